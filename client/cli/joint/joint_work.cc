#include "client/cli/joint/joint_work.h"

#include <cstdio>
#include <string>
#include <utility>
#include <variant>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "client/cli/terminal/terminal_text.h"
#include "core/base/status_macros.h"
#include "core/base/threads/parallel.h"
#include "core/fits/hdu/output_file.h"
#include "core/fits/hdu/source.h"
#include "core/fits/readers.h"
#include "core/products/joint/joint_input.h"
#include "core/products/joint/joint_task.h"
#include "core/products/joint/redrock_table.h"
#include "core/products/template_file.h"

namespace spexd::cli {
namespace {

// The error with the file's name, which those of the analysis do not know.
absl::Status WithFile(const absl::Status& status, const std::string& path) {
  if (status.ok() || absl::StrContains(status.message(), path)) return status;
  return absl::Status(status.code(), absl::StrCat(path, ": ", status.message()));
}

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
  UnitAnalysis(const AnalysisUnit& unit, const JointWork& work) : unit_(unit), work_(work) {}

  UnitResult Run() {
    if (const absl::Status status = ReadAndAnalyse(); !status.ok()) Failed(status);
    return std::move(result_);
  }

 private:
  // Velocities that fail have no models either, which is told once.
  void Failed(const absl::Status& status) {
    const absl::Status error = WithFile(status, unit_.files[0]);
    if (result_.errors.empty() || result_.errors.back() != error) result_.errors.push_back(error);
  }

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
    SPEXD_ASSIGN_OR_RETURN(result_.fits,
                           RunJointTask(spectra, unit_.kind, task,
                                        [this](JointProduct product, const absl::StatusOr<JointFile>& file) {
                                          const absl::Status status = Write(product, file);
                                          if (!status.ok()) Failed(status);
                                        }));
    return absl::OkStatus();
  }

  // An error where rows shall be selected by redrock's file and there is none; a note where its columns alone
  // are asked for.
  absl::StatusOr<std::optional<Source>> FindRedrock() const {
    const JointFlags& flags = work_.flags;
    if (!flags.select_by_redrock && !flags.include_redrock) return std::nullopt;
    const bool of_targets = unit_.kind == SpectraKind::kTargets;
    const std::string path = of_targets ? RedrockPathOf(unit_.files[0]) : "";
    if (!path.empty()) return Source::FromFile(path, {.threads = work_.threads});
    const std::string lack =
        absl::StrCat(unit_.files[0], ": there is no file redrock-* or zbest-* beside it");
    if (flags.select_by_redrock) {
      return absl::InvalidArgumentError(absl::StrCat(lack, "; leave out --zbest-select"));
    }
    if (!work_.quiet) {
      std::fprintf(stderr, "spex: %s: no columns RR_*\n", ForTerminal(lack).c_str());
    }
    return std::nullopt;
  }

  absl::Status Write(JointProduct product, const absl::StatusOr<JointFile>& file) const {
    SPEXD_RETURN_IF_ERROR(file.status());
    const std::string& path = PathOf(product);
    SPEXD_RETURN_IF_ERROR(WriteFileAtomically(path, file->bytes));
    // Models have a line of their own only where there is no table beside them.
    if (work_.quiet || (product == JointProduct::kModels && !unit_.velocities.empty())) {
      return absl::OkStatus();
    }
    const std::string what =
        absl::StrCat(NameOf(product), " of ", file->targets, " targets", Good(product, *file));
    std::printf("%s: %s\n", ForTerminal(path).c_str(),
                file->targets > 0 ? what.c_str() : "no row is selected");
    std::fflush(stdout);
    return absl::OkStatus();
  }

  const std::string& PathOf(JointProduct product) const {
    switch (product) {
      case JointProduct::kVelocities:
        return unit_.velocities;
      case JointProduct::kModels:
        return unit_.models;
      case JointProduct::kRedshifts:
        break;
    }
    return unit_.redshifts;
  }

  static std::string Good(JointProduct product, const JointFile& file) {
    switch (product) {
      case JointProduct::kVelocities:
        return absl::StrCat(", ", file.good, " without a warning");
      case JointProduct::kModels:
        return "";
      case JointProduct::kRedshifts:
        break;
    }
    return absl::StrCat(", ", file.good, " accepted");
  }

  const AnalysisUnit& unit_;
  const JointWork& work_;
  UnitResult result_;
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
