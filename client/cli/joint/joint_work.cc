#include "client/cli/joint/joint_work.h"

#include <algorithm>
#include <cstdio>
#include <string>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "client/cli/terminal/terminal_text.h"
#include "core/base/status_macros.h"
#include "core/fits/hdu/output_file.h"
#include "core/fits/hdu/source.h"
#include "core/fits/readers.h"
#include "core/products/analyse.h"
#include "core/products/joint/exposure_spectra.h"
#include "core/products/joint/joint_analysis.h"
#include "core/products/joint/joint_files.h"
#include "core/products/joint/redrock_table.h"
#include "core/products/product_files.h"
#include "core/products/template_file.h"

namespace spexd::cli {
namespace {

// The error with the file's name, which those of the analysis do not know.
absl::Status WithFile(const absl::Status& status, const std::string& path) {
  if (status.ok() || absl::StrContains(status.message(), path)) return status;
  return absl::Status(status.code(), absl::StrCat(path, ": ", status.message()));
}

absl::Status WriteMade(const absl::StatusOr<std::string>& bytes, const std::string& path) {
  return bytes.ok() ? WriteFileAtomically(path, *bytes) : bytes.status();
}

// The frame less its own sky.
absl::StatusOr<Frame> WithoutSky(Frame frame, const JointWork& work) {
  AnalysisRequest request;
  request.threads = work.threads;
  SPEXD_ASSIGN_OR_RETURN(const Fiberflat* const fiberflat, work.fiberflats.Of(frame));
  if (fiberflat != nullptr) request.fiberflat = *fiberflat;
  SPEXD_ASSIGN_OR_RETURN(const FrameProducts products, Analyse(frame, request));
  SPEXD_RETURN_IF_ERROR(products.sky.status());
  return SkySubtracted(std::move(frame), *products.sky);
}

absl::StatusOr<Frame> LoadWithoutSky(const std::string& path, const JointWork& work) {
  SPEXD_ASSIGN_OR_RETURN(const Source source, Source::FromFile(path, {.threads = work.threads}));
  SPEXD_ASSIGN_OR_RETURN(Frame frame, ReadFrame(source));
  if (!work.sky_subtracted && HasSky(frame, path)) return WithoutSky(std::move(frame), work);
  if (work.fiberflats.empty()) return frame;
  return absl::InvalidArgumentError(
      "has no sky in it, and a frame is divided by its fiberflat before its sky is subtracted; leave out "
      "--fiberflat");
}

absl::StatusOr<TargetSpectra> ReadUnit(const AnalysisUnit& unit, const JointWork& work) {
  if (unit.kind == SpectraKind::kTargets) {
    if (!work.fiberflats.empty()) {
      return absl::InvalidArgumentError(
          "has spectra of targets, which are flat-fielded; leave out --fiberflat");
    }
    SPEXD_ASSIGN_OR_RETURN(const Source source, Source::FromFile(unit.files[0], {.threads = work.threads}));
    return ReadTargetSpectra(source, {.threads = work.threads});
  }
  std::vector<NamedFrame> frames;
  for (const std::string& path : unit.files) {
    absl::StatusOr<Frame> frame = LoadWithoutSky(path, work);
    if (!frame.ok()) return WithFile(frame.status(), path);
    frames.push_back({.name = path, .frame = *std::move(frame)});
  }
  return JoinFrames(std::move(frames));
}

// Leaves the arms whose letters are among those of --fitarm.
absl::Status KeepArms(const std::vector<std::string>& letters, TargetSpectra* spectra) {
  if (letters.empty()) return absl::OkStatus();
  const std::string kept = absl::AsciiStrToUpper(absl::StrJoin(letters, ""));
  std::vector<std::string> there;
  for (const SpectraArm& arm : spectra->arms) {
    there.push_back(arm.name);
    const size_t own = static_cast<size_t>(std::count_if(
        arm.name.begin(), arm.name.end(), [&](char letter) { return absl::StrContains(kept, letter); }));
    if (own > 0 && own < arm.name.size()) {
      return absl::InvalidArgumentError(absl::StrCat(
          "--fitarm: the arm ", arm.name, " is of several cameras combined; name all of them, or none"));
    }
  }
  std::erase_if(spectra->arms, [&](const SpectraArm& arm) { return !absl::StrContains(kept, arm.name[0]); });
  if (!spectra->arms.empty()) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("--fitarm: there is no such arm; there are ", absl::StrJoin(there, ", ")));
}

class UnitAnalysis {
 public:
  UnitAnalysis(const AnalysisUnit& unit, const JointWork& work) : unit_(unit), work_(work) {}

  UnitResult Run() {
    const absl::Status status = ReadAndAnalyse();
    if (status.ok()) {
      Write();
    } else {
      Failed(status);
    }
    return std::move(result_);
  }

 private:
  void Failed(const absl::Status& status) { result_.errors.push_back(WithFile(status, unit_.files[0])); }

  absl::Status ReadAndAnalyse() {
    SPEXD_ASSIGN_OR_RETURN(spectra_, ReadUnit(unit_, work_));
    SPEXD_RETURN_IF_ERROR(KeepArms(work_.flags.arms, &spectra_));
    SPEXD_RETURN_IF_ERROR(FindRedrock());
    RowSelection selection = work_.selection;
    if (work_.flags.select_by_redrock) selection.stars = &*redrock_;
    SPEXD_ASSIGN_OR_RETURN(const std::vector<int> rows, SelectRows(spectra_, selection));
    JointRequest request;
    SPEXD_ASSIGN_OR_RETURN(request.targets, GroupRows(spectra_, rows, work_.flags.per_target));
    if (work_.templates.has_value()) request.templates = &*work_.templates;
    SPEXD_ASSIGN_OR_RETURN(options_.exclude, ExcludedOf(work_.flags, unit_.kind == SpectraKind::kTargets));
    if (work_.flags.coefficients.has_value()) options_.degree = *work_.flags.coefficients - 1;
    options_.scan_degree = std::min(options_.scan_degree, options_.degree);
    options_.threads = work_.threads;
    request.velocity_options = options_;
    request.lines = !unit_.redshifts.empty();
    request.analyser = work_.analyser;
    request.fall_back = work_.fall_back;
    request.threads = work_.threads;
    SPEXD_ASSIGN_OR_RETURN(products_, AnalyseJointly(spectra_, request));
    result_.fits = static_cast<int64_t>(products_.targets.size());
    return absl::OkStatus();
  }

  // An error where rows shall be selected by redrock's file and there is none; a note where its columns alone
  // are asked for.
  absl::Status FindRedrock() {
    const JointFlags& flags = work_.flags;
    if (!flags.select_by_redrock && !flags.include_redrock) return absl::OkStatus();
    const bool of_targets = unit_.kind == SpectraKind::kTargets;
    const std::string path = of_targets ? RedrockPathOf(unit_.files[0]) : "";
    if (!path.empty()) {
      SPEXD_ASSIGN_OR_RETURN(const Source source, Source::FromFile(path, {.threads = work_.threads}));
      SPEXD_ASSIGN_OR_RETURN(redrock_, ReadRedrock(source, spectra_));
      return absl::OkStatus();
    }
    const std::string lack =
        absl::StrCat(unit_.files[0], ": there is no file redrock-* or zbest-* beside it");
    if (flags.select_by_redrock) {
      return absl::InvalidArgumentError(absl::StrCat(lack, "; leave out --zbest-select"));
    }
    if (!work_.quiet) {
      std::fprintf(stderr, "spex: %s: no columns RR_*\n", ForTerminal(lack).c_str());
    }
    return absl::OkStatus();
  }

  void Write() {
    if (work_.templates.has_value()) WriteVelocityFiles();
    if (unit_.redshifts.empty()) return;
    if (!products_.lines.ok()) return Failed(products_.lines.status());
    const auto accepted = std::count_if(products_.lines->begin(), products_.lines->end(),
                                        [](const LineRedshift& line) { return line.warning == 0; });
    Wrote(unit_.redshifts, absl::StrCat("redshifts of ", result_.fits, " targets, ", accepted, " accepted"),
          WriteMade(JointLineFile(spectra_, products_, work_.threads), unit_.redshifts));
  }

  void WriteVelocityFiles() {
    if (!products_.velocities.ok()) return Failed(products_.velocities.status());
    if (!unit_.velocities.empty()) {
      const auto safe = std::count_if(products_.velocities->begin(), products_.velocities->end(),
                                      [](const StarVelocity& star) { return star.flag == 0; });
      Wrote(unit_.velocities,
            absl::StrCat("velocities of ", result_.fits, " targets, ", safe, " without a warning"),
            WriteMade(JointVelocityFile(spectra_, products_, work_.templates->names, options_, redrock_,
                                        work_.threads),
                      unit_.velocities));
    }
    if (unit_.models.empty()) return;
    const absl::Status status = WriteMade(JointModelFile(spectra_, products_, work_.threads), unit_.models);
    // A line of its own only where there is no table beside it.
    if (unit_.velocities.empty()) {
      Wrote(unit_.models, absl::StrCat("models of ", result_.fits, " targets"), status);
    } else if (!status.ok()) {
      Failed(status);
    }
  }

  void Wrote(const std::string& path, const std::string& what, const absl::Status& status) {
    if (!status.ok()) return Failed(status);
    if (work_.quiet) return;
    std::printf("%s: %s\n", ForTerminal(path).c_str(),
                result_.fits > 0 ? ForTerminal(what).c_str() : "no row is selected");
    std::fflush(stdout);
  }

  const AnalysisUnit& unit_;
  const JointWork& work_;
  TargetSpectra spectra_;
  VelocityOptions options_;
  std::optional<RedrockTable> redrock_;
  JointProducts products_;
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
