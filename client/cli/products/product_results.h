// The results of a frame's products: their files, numbers and errors.
#ifndef SPEXD_CLIENT_CLI_PRODUCTS_PRODUCT_RESULTS_H_
#define SPEXD_CLIENT_CLI_PRODUCTS_PRODUCT_RESULTS_H_

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "client/cli/flags/product_paths.h"
#include "core/model/frame.h"
#include "proto/assembler/job_outcome.h"

namespace spexd::cli {

// The file of a product, and the text and numbers about it.
struct ProductResult {
  std::string name;  // as in ProductPaths::Named
  std::string path;
  std::string what;            // "velocities of 20 targets, 18 without a warning"
  nlohmann::json numbers;      // the numbers in `what`, by name
  absl::Status made, written;  // `written` is OK if the product was not made

  const absl::Status& error() const { return made.ok() ? written : made; }
};

// Writes the file of each product that `paths` names. A product that fails does not affect the others.
// `threads`: see WriteFrame.
std::vector<ProductResult> WriteProducts(const Frame& frame, const ProductPaths& paths,
                                         const NamedProducts& made, int threads = 1);

// Returns the results if no product could be made, for one reason.
std::vector<ProductResult> FailedProducts(const ProductPaths& paths, const absl::Status& error);

// Prints a line on stdout for each file unless `quiet`. Returns the first error, which the caller prints, and
// prints all further errors on stderr.
absl::Status PrintProducts(const std::vector<ProductResult>& results, bool quiet);
// Whether every product that was made was also written.
bool AreSafe(const std::vector<ProductResult>& results);

}  // namespace spexd::cli

#endif  // SPEXD_CLIENT_CLI_PRODUCTS_PRODUCT_RESULTS_H_
