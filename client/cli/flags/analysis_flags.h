// Products of a frame on the command line: which, from what, and to which files.
#ifndef SPEXD_CLIENT_CLI_FLAGS_ANALYSIS_FLAGS_H_
#define SPEXD_CLIENT_CLI_FLAGS_ANALYSIS_FLAGS_H_

#include <CLI/CLI.hpp>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "client/job.h"
#include "core/extract/device_spectra.h"
#include "core/model/frame.h"
#include "cuda/loader/choose_engine.h"

namespace spexd::cli {

struct AnalysisFlags {
  std::string sky, sframe, fiberflat;  // "": not asked for
  std::string templates, velocities, lines;
  bool sky_subtracted = false;

  bool any() const { return !(sky.empty() && sframe.empty() && velocities.empty() && lines.empty()); }
};

void AddAnalysisFlags(CLI::App* command, AnalysisFlags* flags);
// Those of them that name files to write.
void AddProductFiles(CLI::App* command, AnalysisFlags* flags);
// Flags that ask a server for products.
void AddAskedProducts(CLI::App* command, client::JobProducts* asked);
// InvalidArgument: a fiberflat without a product.
absl::Status CheckAskedProducts(const client::JobProducts& asked);

// Checks the flags, and whether the files could be written, before the work. `others`: files that the command
// reads or writes beside them.
absl::Status CheckAnalysisFlags(const AnalysisFlags& flags, const std::vector<std::string>& others);
// Whether the files could be written, alone.
absl::Status CheckProductFiles(const AnalysisFlags& flags, const std::vector<std::string>& others);

// Makes the products of a frame, where `where` says, and writes their files; prints a line for each unless
// `quiet`. A product that fails is named on stderr and does not harm the others; the first error is returned
// at the end.
// `resident`: null, or the frame as its extraction left it on a device. After a stop, those that are not made
// yet are Cancelled.
absl::Status MakeProducts(const Frame& frame, const DeviceSpectra* resident, const AnalysisFlags& flags,
                          const EngineChoice& where, bool quiet, std::stop_token stop = {});
// Whether a GPU shall make them, where there is one.
bool MayTakeGpu(const AnalysisFlags& flags, const EngineChoice& where);

// What the flags ask of a server.
client::JobProducts ProductsToAsk(const AnalysisFlags& flags);
// InvalidArgument that names a flag whose product the server was not asked for. `made`: what came, if any.
absl::Status CheckWereAsked(const AnalysisFlags& flags, const std::optional<NamedProducts>& made);

struct WrittenProducts {
  absl::Status error;    // the first of all
  bool all_safe = true;  // each product that there is has been written
};
// Writes the files of products that a server made, as MakeProducts does.
WrittenProducts WriteProducts(const Frame& frame, const AnalysisFlags& flags, const NamedProducts& made,
                              bool quiet);

}  // namespace spexd::cli

#endif  // SPEXD_CLIENT_CLI_FLAGS_ANALYSIS_FLAGS_H_
