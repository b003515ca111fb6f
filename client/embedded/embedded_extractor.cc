#include "client/embedded/embedded_extractor.h"

#include <cstdint>
#include <memory>
#include <optional>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "core/base/status_macros.h"
#include "core/base/threads/deadline.h"
#include "core/base/threads/guard.h"
#include "core/fits/readers.h"
#include "core/frame/job_options.h"
#include "core/job/job_sources.h"

namespace spexd::client {
namespace {

// Returns the reason why a job was stopped; OK if it was not.
absl::Status StopReason(const Deadline& deadline, const std::stop_token& cancel) {
  if (cancel.stop_requested()) return absl::CancelledError("cancelled");
  if (deadline.passed()) return absl::DeadlineExceededError("the time that --timeout allows has passed");
  return absl::OkStatus();
}

// The host of a job in this process, with files of this machine and an observer.
class EmbeddedHost : public JobHost {
 public:
  struct Surroundings {
    Engine* engine = nullptr;  // null: source is set
    const EmbeddedExtractor::EngineSource& source;
    int threads = 1;
    SharedPsfs* psfs = nullptr;  // null if the job's PSF is not shared
  };

  EmbeddedHost(const Job& job, const Surroundings& surroundings, JobObserver* observer, std::stop_token stop)
      : job_(job), surroundings_(surroundings), observer_(observer), stop_(std::move(stop)) {}

  void OnState(JobState state) override {
    if (observer_ != nullptr) observer_->OnState(JobStateName(state));
  }

  absl::StatusOr<JobSources> Open() override {
    JobFiles files = {.image = job_.image,
                      .psf = job_.psf,
                      .fibermap = job_.fibermap,
                      .trace_reference = job_.trace_reference};
    if (surroundings_.psfs != nullptr)
      files.load_psf = [this] { return surroundings_.psfs->Load(job_.psf, stop_); };
    return OpenJobSources(files, ReadThreads(), stop_);
  }
  int ReadThreads() override { return surroundings_.threads; }
  Engine* EngineIfReady() override { return surroundings_.engine; }
  absl::StatusOr<Engine*> WaitForEngine() override { return surroundings_.source(); }

  absl::StatusOr<std::shared_ptr<const Psf>> LoadPsf(const Source& source) override {
    SPEXD_ASSIGN_OR_RETURN(Psf psf, ReadPsf(source, stop_));
    return std::make_shared<const Psf>(std::move(psf));
  }
  absl::StatusOr<std::shared_ptr<const PreparedPsf>> Prepare(Engine* engine,
                                                             const std::shared_ptr<const Psf>& psf,
                                                             const JobPlan& plan,
                                                             const std::stop_token& stop) override {
    if (surroundings_.psfs == nullptr) return engine->Prepare(psf, plan.solve_grid, plan.bundle_size, stop);
    return surroundings_.psfs->Prepare(engine, job_.psf, plan.solve_grid, plan.bundle_size, stop);
  }
  bool KeepOnDevice(const JobPlan& plan) override { return job_.keep_on_device; }
  absl::Status OnBundle(std::shared_ptr<const BundleSpectra> bundle, const JobPlan& plan, int done) override {
    if (observer_ != nullptr) observer_->OnBundle(*bundle, done, plan.bundles);
    return absl::OkStatus();
  }

 private:
  const Job& job_;
  const Surroundings surroundings_;
  JobObserver* const observer_;
  const std::stop_token stop_;
};

}  // namespace

absl::StatusOr<JobOutcome> EmbeddedExtractor::Run(const Job& job, JobObserver* observer,
                                                  std::stop_token stop) {
  absl::StatusOr<JobOutcome> result = CatchExceptions([&]() -> absl::StatusOr<JobOutcome> {
    std::stop_source own;
    const ForwardStop cancel(stop, own);
    const Deadline deadline(own, job.deadline);
    absl::StatusOr<JobOutcome> outcome =
        CatchExceptions([&] { return RunUntil(job, observer, own.get_token()); });
    // If a stop was requested, its reason replaces the job's error.
    if (!outcome.ok() && own.stop_requested()) SPEXD_RETURN_IF_ERROR(StopReason(deadline, stop));
    return outcome;
  });
  if (psfs_ != nullptr && psfs_->Shares(job.psf)) psfs_->EndJob(job.psf);
  return result;
}

absl::StatusOr<JobOutcome> EmbeddedExtractor::RunUntil(const Job& job, JobObserver* observer,
                                                       const std::stop_token& stop) {
  if (absl::StartsWith(job.psf, kPsfHashPrefix)) {
    return absl::InvalidArgumentError(
        absl::StrCat("PSF ", job.psf, ": only a server (--server) knows PSFs by hash"));
  }
  if (absl::StartsWith(job.trace_reference, kPsfHashPrefix)) {
    return absl::InvalidArgumentError(absl::StrCat("trace reference ", job.trace_reference,
                                                   ": only a server (--server) knows references by hash"));
  }
  SPEXD_RETURN_IF_ERROR(CheckJobOptions(job.spec, !job.trace_reference.empty()));
  SharedPsfs* const psfs = psfs_ != nullptr && psfs_->Shares(job.psf) ? psfs_ : nullptr;
  EmbeddedHost host(job, {engine_, source_, read_threads_, psfs}, observer, stop);
  JobRun run(job.spec, JobRun::Assemble::kFrame, &host, stop);
  SPEXD_ASSIGN_OR_RETURN(JobResult result, run.Run());
  JobOutcome outcome;
  outcome.model = run.Model();
  outcome.frame = run.TakeFrame();
  // An error is ignored, because only products use these spectra and do not need them.
  if (auto kept = run.TakeDeviceSpectra(outcome.frame); kept.ok()) outcome.on_device = *std::move(kept);
  outcome.summary = std::move(result.summary);
  outcome.stages = std::move(result.stages);
  outcome.run_seconds = result.run_seconds;
  outcome.estimated_seconds = result.estimated_seconds;
  outcome.engine_seconds = result.engine_seconds;
  outcome.engine = std::move(result.engine);
  outcome.psf_hash = std::move(result.psf_hash);
  return outcome;
}

}  // namespace spexd::client
