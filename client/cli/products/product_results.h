// What became of a frame's products: their files, numbers and errors.
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

// One file, and what is said of it.
struct ProductResult {
  std::string name;  // as ProductPaths::Named
  std::string path;
  std::string what;            // "velocities of 20 targets, 18 without a warning"
  nlohmann::json numbers;      // the same numbers by name
  absl::Status made, written;  // the second is OK if there was nothing to write

  const absl::Status& error() const { return made.ok() ? written : made; }
};

// Writes the file of each product that `paths` names. A product that fails does not harm the others.
// `threads`: see WriteFrame.
std::vector<ProductResult> WriteProducts(const Frame& frame, const ProductPaths& paths,
                                         const NamedProducts& made, int threads = 1);

// The same where no product could be made for one reason.
std::vector<ProductResult> FailedProducts(const ProductPaths& paths, const absl::Status& error);

// Prints a line on stdout for each file unless `quiet`, and on stderr for each further error. Returns the
// first error, which the caller prints.
absl::Status PrintProducts(const std::vector<ProductResult>& results, bool quiet);
// Whether each product that was made has been written.
bool AreSafe(const std::vector<ProductResult>& results);

}  // namespace spexd::cli

#endif  // SPEXD_CLIENT_CLI_PRODUCTS_PRODUCT_RESULTS_H_
