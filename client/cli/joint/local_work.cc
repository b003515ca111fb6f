#include "client/cli/joint/local_work.h"

#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "absl/strings/str_replace.h"
#include "client/cli/joint/unit_report.h"
#include "core/base/status_macros.h"
#include "core/base/threads/parallel.h"
#include "core/fits/hdu/source.h"
#include "core/fits/readers.h"
#include "core/products/joint/joint_input.h"
#include "core/products/joint/joint_task.h"

namespace spexd::cli {
namespace {

// Reads spectra and subtracts the sky.
absl::StatusOr<SpectraInput> ReadInput(const AnalysisUnit& unit, const std::string& path,
                                       const ProductTools& tools, const std::stop_token& stop) {
  const Workers workers = {.threads = tools.threads, .stop = stop};
  SPEXD_ASSIGN_OR_RETURN(const Source source, Source::FromFile(path, {.threads = tools.threads}));
  SPEXD_ASSIGN_OR_RETURN(SpectraInput input, ReadSpectraInput(source, workers));
  if (unit.sky_subtracted) return input;
  const Fiberflat* fiberflat = tools.fiberflats.any();
  if (const Frame* const frame = std::get_if<Frame>(&input.spectra)) {
    SPEXD_ASSIGN_OR_RETURN(fiberflat, tools.fiberflats.Of(*frame));
  }
  SPEXD_RETURN_IF_ERROR(SubtractOwnSky(fiberflat, tools.sky_subtracted, workers, &input));
  return input;
}

absl::Status KeepFittedArms(const std::vector<std::string>& letters, TargetSpectra* spectra) {
  const absl::Status status = KeepArms(letters, spectra);
  return absl::Status(status.code(), absl::StrReplaceAll(status.message(), {{"arms: ", "--fitarm: "}}));
}

}  // namespace

class LocalWork::Analysis {
 public:
  Analysis(const AnalysisUnit& unit, const LocalWork& work, const std::stop_token& stop)
      : unit_(unit), work_(work), tools_(*work.tools_), stop_(stop), report_(unit, work.quiet_) {}

  UnitResult Run() {
    if (const absl::Status status = ReadAndAnalyse(); !status.ok()) report_.Fail(status);
    return report_.Finish();
  }

 private:
  absl::StatusOr<TargetSpectra> Read() const {
    std::vector<SpectraInput> inputs;
    for (const std::string& path : unit_.files) {
      absl::StatusOr<SpectraInput> input = ReadInput(unit_, path, tools_, stop_);
      if (!input.ok()) return WithFile(input.status(), path);
      inputs.push_back(*std::move(input));
    }
    SPEXD_ASSIGN_OR_RETURN(TargetSpectra spectra, JoinInputs(std::move(inputs)));
    SPEXD_RETURN_IF_ERROR(KeepFittedArms(work_.flags_.arms, &spectra));
    return spectra;
  }

  absl::Status ReadAndAnalyse() {
    SPEXD_ASSIGN_OR_RETURN(const TargetSpectra spectra, Read());
    SPEXD_ASSIGN_OR_RETURN(const std::optional<Source> redrock, FindRedrock());
    const JointFlags& flags = work_.flags_;
    JointTask task;
    if (tools_.templates.ok()) task.templates = &*tools_.templates;
    task.velocities = !unit_.velocities.empty();
    task.models = !unit_.models.empty();
    task.lines = !unit_.redshifts.empty();
    task.rows = work_.selection_;
    task.select_by_redrock = flags.select_by_redrock;
    if (redrock.has_value()) task.redrock = &*redrock;
    task.per_target = flags.per_target;
    task.coefficients = flags.coefficients;
    SPEXD_ASSIGN_OR_RETURN(task.exclude, ExcludedOf(flags, unit_.kind == SpectraKind::kTargets));
    task.analyser = tools_.analyser.analyser.get();
    task.fall_back = tools_.fall_back;
    task.threads = tools_.threads;
    task.stop = stop_;
    const auto take = [this](JointProduct product, const absl::StatusOr<JointFile>& file) {
      report_.Take(product, file);
    };
    return RunJointTask(spectra, unit_.kind, task, take).status();
  }

  absl::StatusOr<std::optional<Source>> FindRedrock() const {
    SPEXD_ASSIGN_OR_RETURN(const std::string path, RedrockFileOf(unit_, work_.flags_, work_.quiet_));
    if (path.empty()) return std::nullopt;
    return Source::FromFile(path, {.threads = tools_.threads});
  }

  const AnalysisUnit& unit_;
  const LocalWork& work_;
  const ProductTools& tools_;
  const std::stop_token stop_;
  UnitReport report_;
};

absl::StatusOr<std::unique_ptr<UnitWork>> LocalWork::Prepare(const JointFlags& flags,
                                                             std::shared_ptr<const ProductTools> tools,
                                                             bool quiet) {
  SPEXD_ASSIGN_OR_RETURN(RowSelection selection, SelectionOf(flags));
  if (!tools->templates.ok() && !absl::IsCancelled(tools->templates.status()))
    return tools->templates.status();
  return std::unique_ptr<UnitWork>(new LocalWork(flags, std::move(selection), std::move(tools), quiet));
}

UnitResult LocalWork::Analyse(const AnalysisUnit& unit, const std::stop_token& stop) {
  return Analysis(unit, *this, stop).Run();
}

}  // namespace spexd::cli
