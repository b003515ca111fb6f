// spex coadd: adds the frames of all cameras and exposures of a field, target by target.
#include <cstdio>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "client/cli/commands/commands.h"
#include "client/cli/terminal/exit_code.h"
#include "core/base/machine/cpus.h"
#include "core/base/status_macros.h"
#include "core/base/threads/guard.h"
#include "core/fits/hdu/output_file.h"
#include "core/fits/readers.h"
#include "core/products/coadd/coadd_frames.h"

namespace spexd::cli {
namespace {

struct CoaddOptions {
  std::vector<std::string> frames;
  std::string output;
  ShiftSource shifts;
  int threads = 0;
  bool quiet = false;
};

absl::StatusOr<Frame> ReadFrameAt(const std::string& path) {
  SPEXD_ASSIGN_OR_RETURN(const Source source, Source::FromFile(path));
  return ReadFrame(source);
}

// Adds the frames. Shifted frames must be in memory all at once; others are read and added one after the
// other.
absl::StatusOr<CoaddedFrames> CoaddOf(const CoaddOptions& options) {
  const ShiftSource& shifts = options.shifts;
  if (shifts.barycentric || !shifts.column.empty() || !shifts.velocities.empty()) {
    std::vector<Frame> frames;
    for (const std::string& path : options.frames) {
      SPEXD_ASSIGN_OR_RETURN(Frame frame, ReadFrameAt(path));
      frames.push_back(std::move(frame));
    }
    const int threads = options.threads > 0 ? options.threads : AvailableCpus();
    return CoaddShiftedFrames(frames, options.frames, shifts, threads);
  }
  CoaddFrameSums sums;
  for (const std::string& path : options.frames) {
    SPEXD_ASSIGN_OR_RETURN(const Frame frame, ReadFrameAt(path));
    SPEXD_RETURN_IF_ERROR(sums.Add(frame, path));
  }
  return sums.Result();
}

// Returns ", arms B, R, Z", or "" for a single arm.
std::string ArmsText(const CoaddedFrames& coadd) {
  if (coadd.arms.size() < 2) return "";
  return absl::StrCat(
      ", arms ", absl::StrJoin(coadd.arms, ", ",
                               [](std::string* text, const CoaddedArm& arm) { text->push_back(arm.name); }));
}

absl::Status RunCoadd(const CoaddOptions& options) {
  SPEXD_RETURN_IF_ERROR(CheckWritable(options.output));
  SPEXD_ASSIGN_OR_RETURN(const CoaddedFrames coadd, CoaddOf(options));
  SPEXD_RETURN_IF_ERROR(WriteCoadd(coadd, options.output));
  if (!options.quiet) {
    std::printf("%s: %zu targets of %zu frames%s\n", options.output.c_str(), coadd.target_ids.size(),
                options.frames.size(), ArmsText(coadd).c_str());
  }
  return absl::OkStatus();
}

}  // namespace

void AddCoadd(CLI::App* app, Action* action) {
  auto options = std::make_shared<CoaddOptions>();
  CoaddOptions& o = *options;
  CLI::App* command =
      app->add_subcommand("coadd", "Add up the frames of all cameras and exposures, target by target");
  command
      ->add_option("frames", o.frames,
                   "Sky-subtracted frames, written by spex or the pipeline. The cameras b, r and z become "
                   "the arms of one file")
      ->type_name("FILE")
      ->required();
  command->add_option("-o,--output", o.output, "File of spectra to write")->type_name("FILE")->required();
  CLI::Option* const velocities =
      command
          ->add_option("--velocities", o.shifts.velocities,
                       "Velocities of the frames in km/s, in the order of the frames, such as 0,17,-23")
          ->type_name("LIST")
          ->delimiter(',')
          ->expected(1)
          ->take_all()
          ->allow_extra_args(false);
  CLI::Option* const column =
      command
          ->add_option("--velocity-column", o.shifts.column,
                       "Column of the fibermaps with the velocity of each fibre in km/s")
          ->type_name("NAME");
  CLI::Option* const barycentric =
      command->add_flag("--barycentric", o.shifts.barycentric,
                        "Correct each frame by its pointing and time; the coadd is barycentric");
  column->excludes(velocities);
  barycentric->excludes(velocities)->excludes(column);
  for (CLI::Option* const option : {velocities, column, barycentric}) option->group("Shifted frames");
  command->add_option("--threads", o.threads, "Threads. 0: one per processor")->check(CLI::Range(0, 1024));
  command->add_flag("-q,--quiet", o.quiet, "Print errors only");
  command->callback([options, action] {
    *action = [options] {
      const absl::Status status = CatchExceptions([&] { return RunCoadd(*options); });
      return status.ok() ? static_cast<int>(kOk) : Fail(status);
    };
  });
}

}  // namespace spexd::cli
