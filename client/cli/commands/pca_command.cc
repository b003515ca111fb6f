// spex pca: principal components of the sky residuals of many frames.
#include <algorithm>
#include <cstdio>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "client/cli/commands/commands.h"
#include "client/cli/terminal/exit_code.h"
#include "client/cli/terminal/real_range.h"
#include "core/base/machine/cpus.h"
#include "core/base/status_macros.h"
#include "core/base/threads/guard.h"
#include "core/fits/hdu/output_file.h"
#include "core/fits/readers.h"
#include "core/fits/writers.h"
#include "core/products/product_files.h"
#include "core/products/sky_pca.h"

namespace spexd::cli {
namespace {

struct PcaFlags {
  std::vector<std::string> frames;
  std::string output, fiberflat;
  int components = 10;
  PcaOptions options;
  int threads = 0;
  bool quiet = false;
};

int ThreadsOf(int asked) { return asked > 0 ? asked : AvailableCpus(); }

absl::StatusOr<Frame> Load(const std::string& path) {
  SPEXD_ASSIGN_OR_RETURN(const Source source, Source::FromFile(path));
  return ReadFrame(source);
}

absl::Status RunPca(const PcaFlags& flags) {
  SPEXD_RETURN_IF_ERROR(CheckWritable(flags.output));
  std::optional<Fiberflat> fiberflat;
  if (!flags.fiberflat.empty()) {
    SPEXD_ASSIGN_OR_RETURN(const Source source, Source::FromFile(flags.fiberflat));
    SPEXD_ASSIGN_OR_RETURN(fiberflat, ReadFiberflat(source));
    fiberflat->name = flags.fiberflat;
  }
  SkyPcaSums sums(flags.options);
  for (const std::string& path : flags.frames) {
    SPEXD_ASSIGN_OR_RETURN(const Frame frame, Load(path));
    SPEXD_RETURN_IF_ERROR(sums.Add(frame, path, {fiberflat, ThreadsOf(flags.threads)}));
  }
  SPEXD_ASSIGN_OR_RETURN(const SkyPca pca, sums.Solve(flags.components));
  SPEXD_RETURN_IF_ERROR(WriteSkyPca(pca, flags.output));
  if (!flags.quiet) {
    const auto above = std::count_if(pca.components.values.begin(), pca.components.values.end(),
                                     [&pca](double value) { return value > pca.noise_edge; });
    std::printf("%s: %zu components of %g sky spectra of %zu frames, %zu with more variance than noise has\n",
                flags.output.c_str(), pca.components.values.size(), pca.components.snapshots,
                pca.frames.size(), static_cast<size_t>(above));
  }
  return absl::OkStatus();
}

template <typename Options>
Action ActionOf(const std::shared_ptr<Options>& options, absl::Status (*run)(const Options&)) {
  return [options, run] {
    const absl::Status status = CatchExceptions([&] { return run(*options); });
    return status.ok() ? static_cast<int>(kOk) : Fail(status);
  };
}

}  // namespace

void AddPca(CLI::App* app, Action* action) {
  auto options = std::make_shared<PcaFlags>();
  PcaFlags& o = *options;
  CLI::App* command = app->add_subcommand(
      "pca", "Compute principal components of what the sky model leaves in the sky fibres of frames");
  command
      ->add_option("frames", o.frames,
                   "Frames on one wavelength grid, in order of time, written by spex or the pipeline")
      ->type_name("FILE")
      ->required();
  command->add_option("-o,--output", o.output, "File of components to write, for spex plot")
      ->type_name("FILE")
      ->required();
  command
      ->add_option(
          "--components", o.components,
          "Number of components, those with the largest variance first; at most the number of wavelengths")
      ->capture_default_str()
      ->check(CLI::Range(1, 1'000'000));
  command
      ->add_option("--fiberflat", o.fiberflat,
                   "Fiberflat by which all frames are divided first (HDU FIBERFLAT)")
      ->type_name("FILE");
  command
      ->add_option("--forget", o.options.forget,
                   "Factor by which each frame reduces the weight of all earlier ones. 1: all frames have "
                   "the same weight")
      ->capture_default_str()
      ->check(RealRange(0.01, 1.0));
  command->add_option("--clip", o.options.clip, "Limit in sigma to which larger residuals are reduced")
      ->capture_default_str()
      ->check(RealRange(1.0, 1e6));
  command->add_option("--threads", o.threads, "Threads. 0: one per processor")->check(CLI::Range(0, 1024));
  command->add_flag("-q,--quiet", o.quiet, "Print errors only");
  command->callback([options, action] { *action = ActionOf(options, RunPca); });
}

}  // namespace spexd::cli
