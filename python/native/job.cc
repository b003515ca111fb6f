#include "python/native/job.h"

#include <chrono>
#include <utility>

#include "absl/strings/str_format.h"
#include "core/base/status_macros.h"
#include "core/base/threads/deadline.h"
#include "core/base/threads/guard.h"
#include "core/fits/readers.h"

namespace spexd::python {
namespace {

// Reads the arrays or files of this process's caller.
class CallerHost : public JobHost {
 public:
  CallerHost(const Job& job, const Surroundings& surroundings, const BundleListener& listener,
             std::stop_token stop)
      : job_(job), surroundings_(surroundings), listener_(listener), stop_(std::move(stop)) {}

  absl::StatusOr<JobSources> Open() override {
    return OpenJobSources(job_.files, surroundings_.threads, stop_);
  }
  int ReadThreads() override { return surroundings_.threads; }
  Engine* EngineIfReady() override { return surroundings_.engine; }
  absl::StatusOr<Engine*> WaitForEngine() override { return surroundings_.engine; }
  absl::StatusOr<std::shared_ptr<const Psf>> LoadPsf(const Source& source) override {
    SPEXD_ASSIGN_OR_RETURN(Psf psf, ReadPsf(source, stop_));
    return std::make_shared<const Psf>(std::move(psf));
  }
  absl::StatusOr<std::shared_ptr<const PreparedPsf>> Prepare(Engine* engine,
                                                             const std::shared_ptr<const Psf>& psf,
                                                             const JobPlan& plan,
                                                             const std::stop_token& stop) override {
    return surroundings_.prepared->Get(engine, psf, plan.solve_grid, plan.bundle_size, stop);
  }
  absl::Status OnBundle(std::shared_ptr<const BundleSpectra> bundle, const JobPlan& plan, int done) override {
    return listener_ ? listener_(bundle->fibres, done, plan.bundles) : absl::OkStatus();
  }

 private:
  const Job& job_;
  const Surroundings& surroundings_;
  const BundleListener& listener_;
  const std::stop_token stop_;
};

std::optional<Deadline::Clock::time_point> EndOf(const Job& job) {
  if (!job.timeout.has_value()) return std::nullopt;
  return Deadline::Clock::now() +
         std::chrono::duration_cast<Deadline::Clock::duration>(std::chrono::duration<double>(*job.timeout));
}

absl::StatusOr<Outcome> RunUntil(const Job& job, const Surroundings& surroundings,
                                 const BundleListener& listener, const std::stop_token& stop) {
  CallerHost host(job, surroundings, listener, stop);
  JobRun run(job.spec, JobRun::Assemble::kFrame, &host, stop);
  SPEXD_ASSIGN_OR_RETURN(JobResult result, run.Run());
  Outcome outcome;
  outcome.model = run.Model();
  outcome.frame = run.TakeFrame();
  SPEXD_ASSIGN_OR_RETURN(outcome.on_device, run.TakeDeviceSpectra(outcome.frame));
  outcome.result = std::move(result);
  return outcome;
}

}  // namespace

absl::StatusOr<Outcome> RunJob(const Job& job, const Surroundings& surroundings,
                               const BundleListener& listener, const std::stop_token& stop) {
  return CatchExceptions([&]() -> absl::StatusOr<Outcome> {
    std::stop_source own;
    const ForwardStop cancel(stop, own);
    const Deadline deadline(own, EndOf(job));
    absl::StatusOr<Outcome> outcome =
        CatchExceptions([&] { return RunUntil(job, surroundings, listener, own.get_token()); });
    // If a stop was requested, its reason replaces the job's error.
    if (outcome.ok() || !own.stop_requested()) return outcome;
    if (stop.stop_requested()) return absl::CancelledError("cancelled");
    return absl::DeadlineExceededError(
        absl::StrFormat("the job was not done within its timeout of %g s", *job.timeout));
  });
}

}  // namespace spexd::python
