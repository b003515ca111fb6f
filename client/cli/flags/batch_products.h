// The products that a batch makes of its frames, and of its exposures over all arms.
#ifndef SPEXD_CLIENT_CLI_FLAGS_BATCH_PRODUCTS_H_
#define SPEXD_CLIENT_CLI_FLAGS_BATCH_PRODUCTS_H_

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "client/cli/flags/product_paths.h"

namespace spexd::cli {

struct BatchProducts {
  std::vector<std::string> names;  // those of --products
  ProductInputs inputs;

  bool Has(const char* name) const;
  bool any() const { return !names.empty(); }
  bool of_exposures() const { return Has("exposure-velocities") || Has("exposure-redshifts"); }
};

// Adds --products.
CLI::Option* AddProductNames(CLI::App* command, std::vector<std::string>* names);

// InvalidArgument: velocities without templates, or inputs without a product that takes them.
absl::Status CheckBatchProducts(const BatchProducts& products);

// `prefix` in place of the "frame-" of a frame's file, or before its name: frames/frame-r0-1.fits becomes
// frames/sky-r0-1.fits.
std::string NameBeside(const std::string& frame, const std::string& prefix);

// The files of a frame's own products, beside it: sky-, sframe-, rvtab- and zlines-.
ProductPaths NameProducts(const BatchProducts& products, const std::string& frame);

}  // namespace spexd::cli

#endif  // SPEXD_CLIENT_CLI_FLAGS_BATCH_PRODUCTS_H_
