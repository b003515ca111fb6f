// The products that a batch computes for its frames, and for its exposures over all arms.
#ifndef SPEXD_CLIENT_CLI_FLAGS_BATCH_PRODUCTS_H_
#define SPEXD_CLIENT_CLI_FLAGS_BATCH_PRODUCTS_H_

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "client/cli/flags/product_paths.h"

namespace spexd::cli {

struct BatchProducts {
  std::vector<std::string> names;  // values of --products
  ProductInputs inputs;

  bool Has(const char* name) const;
  bool any() const { return !names.empty(); }
  bool of_exposures() const { return Has("exposure-velocities") || Has("exposure-redshifts"); }
};

// Adds --products.
CLI::Option* AddProductNames(CLI::App* command, std::vector<std::string>* names);

// Returns InvalidArgument for velocities without templates, and for inputs that no requested product uses.
absl::Status CheckBatchProducts(const BatchProducts& products);

// Replaces "frame-" in the name of a frame's file by `prefix` and "-", or prepends them if it is not there:
// frames/frame-r0-1.fits becomes frames/sky-r0-1.fits.
std::string NameBeside(const std::string& frame, const std::string& prefix);

// Returns the files of a frame's own products in its folder: sky-, sframe-, rvtab- and zlines-.
ProductPaths NameProducts(const BatchProducts& products, const std::string& frame);

}  // namespace spexd::cli

#endif  // SPEXD_CLIENT_CLI_FLAGS_BATCH_PRODUCTS_H_
