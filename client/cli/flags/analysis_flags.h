// The flags of a frame's products: which products, from which inputs, and to which files.
#ifndef SPEXD_CLIENT_CLI_FLAGS_ANALYSIS_FLAGS_H_
#define SPEXD_CLIENT_CLI_FLAGS_ANALYSIS_FLAGS_H_

#include <CLI/CLI.hpp>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "client/cli/flags/product_paths.h"
#include "client/job.h"
#include "proto/assembler/job_outcome.h"

namespace spexd::cli {

struct AnalysisFlags {
  ProductPaths files;
  ProductInputs inputs;
};

// Adds --sky, --sframe, --velocity-out and --lines-out, which name files to write.
void AddProductFiles(CLI::App* command, ProductPaths* files);
// Adds --fiberflat and --velocity.
void AddProductInputs(CLI::App* command, ProductInputs* inputs);
// Adds --sky, --lines, --fiberflat and --velocity, which request products from a server.
void AddAskedProducts(CLI::App* command, client::JobProducts* asked);
// Returns InvalidArgument for a fiberflat without a product.
absl::Status CheckAskedProducts(const client::JobProducts& asked);

// Checks the flags of one frame, and whether the files can be written, before the work starts. `others`:
// other files that the command reads or writes.
absl::Status CheckAnalysisFlags(const AnalysisFlags& flags, const std::vector<std::string>& others);
// Checks only whether the files can be written.
absl::Status CheckProductFiles(const ProductPaths& files, const std::vector<std::string>& others);

// Returns the products that a job requests from a server if they go to `files`, without the fiberflat
// (NamedFiberflats).
client::JobProducts ProductsToAsk(const ProductPaths& files, const ProductInputs& inputs);
// Returns InvalidArgument, naming the flag, for a file whose product was not requested from the server.
// `made`: the products that the server sent, if any.
absl::Status CheckWereAsked(const ProductPaths& files, const std::optional<NamedProducts>& made);

}  // namespace spexd::cli

#endif  // SPEXD_CLIENT_CLI_FLAGS_ANALYSIS_FLAGS_H_
