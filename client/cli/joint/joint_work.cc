#include "client/cli/joint/joint_work.h"

#include <string>
#include <utility>
#include <variant>

#include "absl/strings/str_replace.h"
#include "client/cli/joint/unit_report.h"
#include "core/base/status_macros.h"
#include "core/base/threads/parallel.h"
#include "core/fits/hdu/source.h"
#include "core/fits/readers.h"
#include "core/products/joint/joint_input.h"
#include "core/products/joint/joint_task.h"
#include "core/products/template_file.h"

namespace spexd::cli {
namespace {

// Spectra without the sky.
absl::StatusOr<SpectraInput> ReadInput(const std::string& path, const JointWork& work) {
  const Workers workers = {.threads = work.threads};
  SPEXD_ASSIGN_OR_RETURN(const Source source, Source::FromFile(path, {.threads = work.threads}));
  SPEXD_ASSIGN_OR_RETURN(SpectraInput input, ReadSpectraInput(source, workers));
  const Fiberflat* fiberflat = work.fiberflats.any();
  if (const Frame* const frame = std::get_if<Frame>(&input.spectra)) {
    SPEXD_ASSIGN_OR_RETURN(fiberflat, work.fiberflats.Of(*frame));
  }
  SPEXD_RETURN_IF_ERROR(SubtractOwnSky(fiberflat, work.sky_subtracted, workers, &input));
  return input;
}

absl::Status KeepFittedArms(const std::vector<std::string>& letters, TargetSpectra* spectra) {
  const absl::Status status = KeepArms(letters, spectra);
  return absl::Status(status.code(), absl::StrReplaceAll(status.message(), {{"arms: ", "--fitarm: "}}));
}

class UnitAnalysis {
 public:
  UnitAnalysis(const AnalysisUnit& unit, const JointWork& work)
      : unit_(unit), work_(work), report_(unit, work.quiet) {}

  UnitResult Run() {
    if (const absl::Status status = ReadAndAnalyse(); !status.ok()) report_.Fail(status);
    return report_.Finish();
  }

 private:
  absl::StatusOr<TargetSpectra> Read() const {
    std::vector<SpectraInput> inputs;
    for (const std::string& path : unit_.files) {
      absl::StatusOr<SpectraInput> input = ReadInput(path, work_);
      if (!input.ok()) return WithFile(input.status(), path);
      inputs.push_back(*std::move(input));
    }
    SPEXD_ASSIGN_OR_RETURN(TargetSpectra spectra, JoinInputs(std::move(inputs)));
    SPEXD_RETURN_IF_ERROR(KeepFittedArms(work_.flags.arms, &spectra));
    return spectra;
  }

  absl::Status ReadAndAnalyse() {
    SPEXD_ASSIGN_OR_RETURN(const TargetSpectra spectra, Read());
    SPEXD_ASSIGN_OR_RETURN(const std::optional<Source> redrock, FindRedrock());
    const JointFlags& flags = work_.flags;
    JointTask task;
    if (work_.templates.has_value()) task.templates = &*work_.templates;
    task.velocities = !unit_.velocities.empty();
    task.models = !unit_.models.empty();
    task.lines = !unit_.redshifts.empty();
    task.rows = work_.selection;
    task.select_by_redrock = flags.select_by_redrock;
    if (redrock.has_value()) task.redrock = &*redrock;
    task.per_target = flags.per_target;
    task.coefficients = flags.coefficients;
    SPEXD_ASSIGN_OR_RETURN(task.exclude, ExcludedOf(flags, unit_.kind == SpectraKind::kTargets));
    task.analyser = work_.analyser;
    task.fall_back = work_.fall_back;
    task.threads = work_.threads;
    const auto take = [this](JointProduct product, const absl::StatusOr<JointFile>& file) {
      report_.Take(product, file);
    };
    return RunJointTask(spectra, unit_.kind, task, take).status();
  }

  absl::StatusOr<std::optional<Source>> FindRedrock() const {
    SPEXD_ASSIGN_OR_RETURN(const std::string path, RedrockFileOf(unit_, work_.flags, work_.quiet));
    if (path.empty()) return std::nullopt;
    return Source::FromFile(path, {.threads = work_.threads});
  }

  const AnalysisUnit& unit_;
  const JointWork& work_;
  UnitReport report_;
};

absl::StatusOr<TemplateLibrary> TemplatesOf(const std::string& path) {
  SPEXD_ASSIGN_OR_RETURN(const Source source, Source::FromFile(path));
  return ReadTemplates(source);
}

}  // namespace

absl::StatusOr<JointWork> PrepareJointWork(const JointFlags& flags, const AnalysisFlags& products,
                                           const std::vector<std::string>& fiberflats) {
  JointWork work;
  work.flags = flags;
  work.sky_subtracted = products.sky_subtracted;
  SPEXD_ASSIGN_OR_RETURN(work.selection, SelectionOf(flags));
  if (!products.templates.empty()) {
    SPEXD_ASSIGN_OR_RETURN(work.templates, TemplatesOf(products.templates));
  }
  SPEXD_ASSIGN_OR_RETURN(work.fiberflats, CameraFiberflats::Load(fiberflats));
  return work;
}

UnitResult AnalyseUnit(const AnalysisUnit& unit, const JointWork& work) {
  return UnitAnalysis(unit, work).Run();
}

}  // namespace spexd::cli
