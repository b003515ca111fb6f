// Products of frames on the command line: which, from what, and to which files.
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

// Add --sky, --sframe, --velocity-out and --lines-out, which name files to write.
void AddProductFiles(CLI::App* command, ProductPaths* files);
// Add --fiberflat and --velocity.
void AddProductInputs(CLI::App* command, ProductInputs* inputs);
// Flags that ask a server for products.
void AddAskedProducts(CLI::App* command, client::JobProducts* asked);
// InvalidArgument: a fiberflat without a product.
absl::Status CheckAskedProducts(const client::JobProducts& asked);

// Checks the flags of one frame, and whether the files could be written, before the work. `others`: files
// that the command reads or writes beside them.
absl::Status CheckAnalysisFlags(const AnalysisFlags& flags, const std::vector<std::string>& others);
// Whether the files could be written, alone.
absl::Status CheckProductFiles(const ProductPaths& files, const std::vector<std::string>& others);

// What a job whose products go to `files` asks of a server, but for the fiberflat (NamedFiberflats).
client::JobProducts ProductsToAsk(const ProductPaths& files, const ProductInputs& inputs);
// InvalidArgument that names a flag whose product the server was not asked for. `made`: what came, if any.
absl::Status CheckWereAsked(const ProductPaths& files, const std::optional<NamedProducts>& made);

}  // namespace spexd::cli

#endif  // SPEXD_CLIENT_CLI_FLAGS_ANALYSIS_FLAGS_H_
