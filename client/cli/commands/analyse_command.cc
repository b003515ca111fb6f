// spex analyse: sky, velocities of stars and redshifts of emission lines of a frame; or velocities and
// redshifts of targets, fitted jointly to the arms and exposures of files of spectra or to the cameras of an
// exposure.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "client/cli/commands/commands.h"
#include "client/cli/flags/analysis_flags.h"
#include "client/cli/flags/job_flags.h"
#include "client/cli/flags/joint_flags.h"
#include "client/cli/flags/where_flags.h"
#include "client/cli/joint/analysis_units.h"
#include "client/cli/joint/local_work.h"
#include "client/cli/joint/remote_work.h"
#include "client/cli/joint/status_file.h"
#include "client/cli/joint/unit_report.h"
#include "client/cli/joint/unit_work.h"
#include "client/cli/products/product_results.h"
#include "client/cli/products/product_tools.h"
#include "client/cli/terminal/exit_code.h"
#include "client/cli/terminal/frame_output.h"
#include "client/cli/terminal/interrupt.h"
#include "client/cli/terminal/terminal_text.h"
#include "core/base/seconds_since.h"
#include "core/base/status_macros.h"
#include "core/base/threads/guard.h"
#include "core/fits/hdu/source.h"
#include "core/fits/readers.h"
#include "core/products/joint/exposure_spectra.h"
#include "cuda/loader/choose_engine.h"

namespace spexd::cli {
namespace {

struct AnalyseOptions {
  std::vector<std::string> files;
  AnalysisFlags products;
  JointFlags joint;
  JobFlags job;  // only upload and priority
  WhereFlags where;
  bool quiet = false;

  bool on_server() const { return !where.server.address.empty(); }
  // Whether the server comes from the environment, which sets it for all commands.
  bool server_is_default() const {
    const char* const server = std::getenv("SPEXD_SERVER");
    return server != nullptr && where.server.address == server;
  }
};

bool AreAllThere(const std::vector<std::string>& paths) {
  return std::all_of(paths.begin(), paths.end(), [](const std::string& path) {
    std::error_code ignored;
    return std::filesystem::exists(path, ignored);
  });
}

// The joint analysis of the units of one command, one after the other.
class JointCommand {
 public:
  JointCommand(const AnalyseOptions& options, const std::vector<std::string>& files)
      : options_(options), files_(files), status_file_(options.joint.status_file) {}

  // Returns the exit code: kDifferent if one of several files failed. A single unit whose outputs are named
  // by flags fails with its own error.
  absl::StatusOr<int> Run() {
    SPEXD_RETURN_IF_ERROR(CheckJointFlags(options_.joint, options_.products));
    std::optional<InterruptGuard> interrupt;
    if (options_.on_server()) interrupt.emplace(stop_);
    UnitList list = ListUnits(files_, FileThreads(options_.where));
    if (!in_folder()) {
      SPEXD_RETURN_IF_ERROR(CheckIsOne(list));
    }
    NameOutputs(options_.joint, options_.products, &list.units);
    SPEXD_RETURN_IF_ERROR(CheckStatusFile(list.units));
    SPEXD_RETURN_IF_ERROR(CheckUnitOutputs(list.units, FilesRead()));
    SPEXD_ASSIGN_OR_RETURN(work_, PrepareWork());
    SPEXD_RETURN_IF_ERROR(status_file_.Begin());
    for (const auto& [path, status] : list.unreadable) {
      Failed(status);
      SPEXD_RETURN_IF_ERROR(status_file_.Add({path}, FileStatus::kFailure, 0, 0));
    }
    for (const AnalysisUnit& unit : list.units) {
      SPEXD_RETURN_IF_ERROR(Do(unit));
      if (stop_.stop_requested()) return kInterrupted;
    }
    return code_;
  }

 private:
  bool in_folder() const { return !options_.joint.output_dir.empty(); }

  absl::StatusOr<std::unique_ptr<UnitWork>> PrepareWork() const {
    const ProductInputs& inputs = options_.products.inputs;
    if (options_.on_server()) {
      return RemoteWork::Prepare(options_.where.server, options_.job, options_.joint, inputs, options_.quiet);
    }
    SPEXD_ASSIGN_OR_RETURN(const EngineChoice where, MakeChoice(options_.where));
    SPEXD_RETURN_IF_ERROR(CheckEngineChoice(where));
    SPEXD_ASSIGN_OR_RETURN(ProductTools tools, LoadTools(inputs, FileThreads(options_.where)));
    // Only velocities make waking up a device worthwhile.
    if (where.device != "cpu" && tools.templates.ok()) {
      HideOtherDevices(where);
      SPEXD_RETURN_IF_ERROR(TakeAnalyser(where, options_.quiet, &tools));
    }
    return LocalWork::Prepare(options_.joint, std::make_shared<const ProductTools>(std::move(tools)),
                              options_.quiet);
  }

  absl::Status CheckIsOne(const UnitList& list) const {
    if (list.units.size() + list.unreadable.size() > 1) {
      return absl::InvalidArgumentError(absl::StrCat(
          "analyse: ", files_.size(), " files make ", list.units.size() + list.unreadable.size(),
          " sets of products; give --output-dir instead of --velocity-out, --model-out and --lines-out"));
    }
    return list.unreadable.empty() ? absl::OkStatus() : list.unreadable[0].second;
  }

  std::vector<std::string> FilesRead() const {
    const ProductInputs& inputs = options_.products.inputs;
    std::vector<std::string> read = files_;
    read.insert(read.end(), inputs.fiberflats.begin(), inputs.fiberflats.end());
    read.insert(read.end(), {inputs.templates, options_.joint.input_list, options_.joint.target_id_file});
    return read;
  }

  // Checks that the status file, which is emptied first, is none of the other files.
  absl::Status CheckStatusFile(const std::vector<AnalysisUnit>& units) const {
    const std::string& path = options_.joint.status_file;
    std::vector<std::string> others = FilesRead();
    for (const AnalysisUnit& unit : units) {
      const std::vector<std::string> outputs = unit.outputs();
      others.insert(others.end(), outputs.begin(), outputs.end());
    }
    for (const std::string& other : others) {
      if (!path.empty() && !other.empty() && SameFile(path, other)) {
        return absl::InvalidArgumentError(
            absl::StrCat("--process-status-file: ", path, " must be a file of its own"));
      }
    }
    return absl::OkStatus();
  }

  absl::Status Do(const AnalysisUnit& unit) {
    if (options_.joint.skip_existing && AreAllThere(unit.outputs())) {
      if (!options_.quiet) {
        std::printf("%s: is there already\n", ForTerminal(unit.outputs().front()).c_str());
      }
      return status_file_.Add(unit.files, FileStatus::kExisting, -1, 0);
    }
    const auto begin = std::chrono::steady_clock::now();
    // A lack of memory for one file is an error of that file.
    absl::StatusOr<UnitResult> result = CatchExceptions(
        [&]() -> absl::StatusOr<UnitResult> { return work_->Analyse(unit, stop_.get_token()); });
    if (!result.ok()) {
      const std::string what = absl::StrCat(unit.files[0], ": ", result.status().message());
      result = UnitResult{.fits = 0, .errors = {absl::Status(result.status().code(), what)}};
    }
    for (const absl::Status& status : result->errors) Failed(status);
    const bool failed = !result->errors.empty();
    return status_file_.Add(unit.files, failed ? FileStatus::kFailure : FileStatus::kSuccess,
                            failed ? 0 : result->fits, SecondsSince(begin));
  }

  void Failed(const absl::Status& status) {
    int own = Fail(status);
    if (own == kInterrupted) own = kServer;  // cancelled by the server
    code_ = std::max<int>(code_, in_folder() ? kDifferent : own);
  }

  const AnalyseOptions& options_;
  const std::vector<std::string>& files_;
  const StatusFile status_file_;
  std::stop_source stop_;  // stops the work on a server
  std::unique_ptr<UnitWork> work_;
  int code_ = kOk;
};

// Returns the frame in a file; nullopt: the file has spectra of targets.
absl::StatusOr<std::optional<Frame>> FrameIn(const std::string& path, bool refuse_frame) {
  SPEXD_ASSIGN_OR_RETURN(const Source source, Source::FromFile(path));
  SPEXD_ASSIGN_OR_RETURN(const SpectraKind kind, KindOfSpectra(source));
  if (kind == SpectraKind::kTargets) return std::nullopt;
  if (!refuse_frame) return ReadFrame(source);
  return absl::InvalidArgumentError(absl::StrCat(
      path,
      ": the products of a single frame are made where it is extracted (spex extract --server with --sky, "
      "--sframe, --velocity-out or --lines-out), or here (leave out --server); spex analyse --server makes "
      "those of joint fits (--output-dir)"));
}

// Makes the products of a frame, or of a file of spectra whose outputs are named by the flags for a frame.
absl::StatusOr<int> AnalyseOneFile(const AnalyseOptions& options, const std::vector<std::string>& files) {
  const ProductPaths& paths = options.products.files;
  ProductInputs inputs = options.products.inputs;
  SPEXD_RETURN_IF_ERROR(CheckAnalysisFlags(options.products, files));
  if (!paths.any()) {
    return absl::InvalidArgumentError(
        "analyse: no product is asked for; see --sky, --sframe, --velocity-out, --lines-out, --output-dir");
  }
  SPEXD_ASSIGN_OR_RETURN(const EngineChoice where, MakeChoice(options.where));
  SPEXD_RETURN_IF_ERROR(CheckEngineChoice(where));
  SPEXD_ASSIGN_OR_RETURN(const std::optional<Frame> frame,
                         FrameIn(files[0], options.on_server() && !options.server_is_default()));
  if (!frame.has_value()) {
    if (!paths.sky.empty() || !paths.sframe.empty()) {
      return absl::InvalidArgumentError(absl::StrCat(
          files[0], ": has spectra of targets, which have no sky in them; leave out --sky and --sframe"));
    }
    return JointCommand(options, files).Run();
  }
  if (paths.sky.empty() && paths.sframe.empty() && !HasSky(*frame, files[0])) inputs.sky_subtracted = true;
  SPEXD_ASSIGN_OR_RETURN(ProductTools tools, LoadTools(inputs, FileThreads(options.where)));
  if (MayTakeGpu(!paths.velocities.empty(), where)) {
    HideOtherDevices(where);
    SPEXD_RETURN_IF_ERROR(TakeAnalyser(where, options.quiet, &tools));
  }
  const absl::StatusOr<NamedProducts> made = MakeProducts(*frame, nullptr, paths, tools);
  if (!made.ok()) return WithFile(made.status(), files[0]);
  SPEXD_RETURN_IF_ERROR(
      PrintProducts(WriteProducts(*frame, paths, *made, FileThreads(options.where)), options.quiet));
  return kOk;
}

absl::StatusOr<int> RunAnalyse(const AnalyseOptions& options) {
  // This is checked first, because such a flag may have taken the name of a file as its value.
  if (!options.joint.refused.empty()) return absl::InvalidArgumentError(options.joint.refused.front());
  SPEXD_ASSIGN_OR_RETURN(const std::vector<std::string> files, FilesToAnalyse(options.files, options.joint));
  SPEXD_RETURN_IF_ERROR(CheckJobNames(files, options.on_server()));
  ReportIdleFlags(options.job, options.where, options.quiet);
  if (files.size() == 1 && !NamesJob(files[0]) && AsksForOneFrame(options.joint))
    return AnalyseOneFile(options, files);
  if (!options.products.files.sky.empty() || !options.products.files.sframe.empty()) {
    return absl::InvalidArgumentError(
        "--sky and --sframe: are made of a single frame; give it alone, without the flags of joint fits");
  }
  return JointCommand(options, files).Run();
}

}  // namespace

void AddAnalyse(CLI::App* app, Action* action) {
  auto options = std::make_shared<AnalyseOptions>();
  AnalyseOptions& o = *options;
  CLI::App* command = app->add_subcommand(
      "analyse",
      "Fit the sky, velocities of stars and redshifts of emission lines in frames and files of spectra");
  command
      ->add_option("files", o.files,
                   "Frame; or files of spectra, or frames of the cameras of exposures, written by spex or "
                   "the pipeline. With --server also job:ID for the detached jobs of one exposure")
      ->type_name("FILE");
  AddProductFiles(command, &o.products.files);
  AddProductInputs(command, &o.products.inputs);
  command
      ->add_flag("--sky-subtracted", o.products.inputs.sky_subtracted,
                 "The sky is already subtracted from the frames")
      ->group("Products");
  AddJointFlags(command, &o.joint);
  AddWhereFlags(command, &o.where);
  AddServerJobFlags(command, "Where", &o.job);
  command->add_option("--nthreads", o.where.threads, "Same as --threads")
      ->check(CLI::Range(0, 1024))
      ->group("Where");
  command->add_flag("-q,--quiet", o.quiet, "Print errors only");
  command->callback([options, action] {
    *action = [options] {
      const absl::StatusOr<int> code = CatchExceptions([&] { return RunAnalyse(*options); });
      return code.ok() ? *code : Fail(code.status());
    };
  });
}

}  // namespace spexd::cli
