#include "client/cli/joint/remote_work.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "client/cli/joint/unit_report.h"
#include "client/cli/terminal/progress.h"
#include "client/connection/grpc_connection.h"
#include "core/base/status_macros.h"
#include "core/fits/hdu/source.h"
#include "core/fits/readers.h"

namespace spexd::cli {
absl::StatusOr<std::unique_ptr<UnitWork>> RemoteWork::Prepare(const client::ServerAddress& server,
                                                              const JobFlags& job, const JointFlags& flags,
                                                              const ProductInputs& inputs, bool quiet) {
  std::unique_ptr<RemoteWork> work(new RemoteWork(quiet));
  work->flags_ = flags;
  SPEXD_ASSIGN_OR_RETURN(work->fiberflats_, NamedFiberflats::Load(inputs.fiberflats));
  client::AnalysisJob& common = work->common_;
  common.templates = inputs.templates;
  common.sky_subtracted = inputs.sky_subtracted;
  SPEXD_ASSIGN_OR_RETURN(common.rows, SelectionOf(flags));
  common.stars_by_redrock = flags.select_by_redrock;
  common.per_target = flags.per_target;
  common.coefficients = flags.coefficients;
  if (!flags.exclude.empty()) {
    SPEXD_ASSIGN_OR_RETURN(common.exclude, ExcludedOf(flags, /*of_targets=*/true));
  }
  common.arms = flags.arms;
  common.priority = job.spec.priority;
  SPEXD_ASSIGN_OR_RETURN(work->directory_, client::OpenDirectory(server));
  client::RemoteOptions options;
  options.upload = job.upload;
  work->analyser_.emplace(work->directory_->source(), options);
  return work;
}

absl::StatusOr<std::string> RemoteWork::FiberflatOf(const AnalysisUnit& unit, const std::string& file) const {
  const std::vector<std::string>& names = fiberflats_.names();
  const CameraFiberflats& by_camera = fiberflats_.by_camera();
  if (names.empty() || unit.sky_subtracted) return std::string();
  // The server refuses a fiberflat for files of targets' spectra.
  if (unit.kind == SpectraKind::kTargets || by_camera.any() == nullptr) return names[0];
  if (!NamesJob(file)) {
    SPEXD_ASSIGN_OR_RETURN(const Source source, Source::FromFile(file));
    SPEXD_ASSIGN_OR_RETURN(const std::vector<std::string> cards, ReadFrameCards(source));
    SPEXD_ASSIGN_OR_RETURN(const Fiberflat* const fiberflat, by_camera.Of(cards));
    return fiberflat->name;
  }
  if (names.size() == 1 && unit.files.size() == 1) return names[0];
  const absl::StatusOr<const Fiberflat*> of_all = by_camera.Of(std::vector<std::string>());
  if (of_all.ok()) return (*of_all)->name;
  return absl::InvalidArgumentError(
      "the camera of a detached job is not known here; give a single --fiberflat without CAMERA, or submit "
      "the jobs with --sky and their fiberflats");
}

absl::StatusOr<client::AnalysisJob> RemoteWork::JobOf(const AnalysisUnit& unit) const {
  client::AnalysisJob job = common_;
  for (const std::string& file : unit.files) {
    absl::StatusOr<std::string> fiberflat = FiberflatOf(unit, file);
    if (!fiberflat.ok()) return WithFile(fiberflat.status(), file);
    job.sources.push_back({.spectra = file, .fiberflat = *std::move(fiberflat)});
  }
  if (unit.sky_subtracted) job.sky_subtracted = true;
  job.models = !unit.models.empty();
  job.lines = !unit.redshifts.empty();
  SPEXD_ASSIGN_OR_RETURN(job.redrock, RedrockFileOf(unit, flags_, quiet_));
  return job;
}

UnitResult RemoteWork::Analyse(const AnalysisUnit& unit, const std::stop_token& stop) {
  UnitReport report(unit, quiet_);
  const auto run = [&]() -> absl::StatusOr<client::AnalysisOutcome> {
    SPEXD_ASSIGN_OR_RETURN(const client::AnalysisJob job, JobOf(unit));
    Progress progress(quiet_ ? ProgressStyle::kNone : ProgressStyle::kLines, unit.files[0]);
    return analyser_->Run(job, &progress, stop);
  };
  absl::StatusOr<client::AnalysisOutcome> outcome = run();
  if (!outcome.ok()) {
    report.Fail(outcome.status());
    return report.Finish();
  }
  // This is the order of RunJointTask.
  for (const JointProduct product :
       {JointProduct::kRedshifts, JointProduct::kVelocities, JointProduct::kModels}) {
    report.Take(product, outcome->FileOf(product));
  }
  return report.Finish();
}

}  // namespace spexd::cli
