#include "client/embedded_runner.h"

#include <future>
#include <memory>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "core/base/deadline.h"
#include "core/base/guard.h"
#include "core/base/status_macros.h"
#include "core/fits/readers.h"
#include "core/fits/source.h"

namespace spexd::client {
namespace {

double SecondsSince(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

absl::StatusOr<Psf> LoadPsf(const std::string& path) {
  SPEXD_ASSIGN_OR_RETURN(const Source source, Source::FromFile(path));
  return ReadPsf(source);
}

// The image is decoded on this thread, and the PSF on another.
absl::StatusOr<JobInput> ReadInput(const Job& job, int threads) {
  std::future<absl::StatusOr<Psf>> psf = std::async(std::launch::async, LoadPsf, job.psf);
  SPEXD_ASSIGN_OR_RETURN(const Source source, Source::FromFile(job.image));
  SPEXD_ASSIGN_OR_RETURN(Preproc preproc, ReadPreproc(source, threads));
  JobInput input;
  input.image_name = job.image;
  input.psf_name = job.psf;
  input.image = std::make_shared<const Image>(std::move(preproc.image));
  input.image_cards = std::move(preproc.image_cards);
  input.fibermap = std::move(preproc.fibermap);
  if (!job.fibermap.empty()) {
    SPEXD_ASSIGN_OR_RETURN(const Source fibermap, Source::FromFile(job.fibermap));
    SPEXD_ASSIGN_OR_RETURN(input.fibermap, ReadFibermap(fibermap));
  }
  SPEXD_ASSIGN_OR_RETURN(Psf model, psf.get());
  input.psf = std::make_shared<const Psf>(std::move(model));
  return input;
}

// The reason why a job stopped; OK if nobody asked for it.
absl::Status StopReason(const Deadline& deadline, const std::stop_token& cancel) {
  if (cancel.stop_requested()) return absl::CancelledError("cancelled");
  if (deadline.passed()) return absl::DeadlineExceededError("the time that --timeout allows has passed");
  return absl::OkStatus();
}

void NotifyState(JobObserver* observer, const char* state) {
  if (observer != nullptr) observer->OnState(state);
}

}  // namespace

absl::StatusOr<JobOutcome> EmbeddedRunner::Run(const Job& job, JobObserver* observer, std::stop_token stop) {
  std::stop_source own;
  const ForwardStop cancel(stop, own);
  const Deadline deadline(own, job.deadline);
  absl::StatusOr<JobOutcome> outcome =
      CatchExceptions([&] { return RunUntil(job, observer, own.get_token()); });
  // If a stop was requested, its reason replaces the job's error.
  if (!outcome.ok() && own.stop_requested()) SPEXD_RETURN_IF_ERROR(StopReason(deadline, stop));
  return outcome;
}

absl::StatusOr<JobOutcome> EmbeddedRunner::RunUntil(const Job& job, JobObserver* observer,
                                                    const std::stop_token& stop) {
  if (absl::StartsWith(job.psf, kPsfHashPrefix)) {
    return absl::InvalidArgumentError(
        absl::StrCat("PSF ", job.psf, ": only a server (--server) knows PSFs by hash"));
  }
  const auto start = std::chrono::steady_clock::now();
  NotifyState(observer, "reading");
  SPEXD_ASSIGN_OR_RETURN(const JobInput input, ReadInput(job, read_threads_));
  SPEXD_ASSIGN_OR_RETURN(JobPlan plan, PlanJob(job.spec, input));
  if (stop.stop_requested()) return absl::CancelledError("cancelled");
  JobOutcome outcome;
  outcome.stages.push_back({"decode", SecondsSince(start)});

  NotifyState(observer, "preparing");
  const auto prepare_start = std::chrono::steady_clock::now();
  SPEXD_ASSIGN_OR_RETURN(Engine* const engine, engine_());
  outcome.estimated_seconds = engine->Estimate(OutlineOf(plan, *input.psf)).seconds;
  const auto engine_start = std::chrono::steady_clock::now();
  SPEXD_ASSIGN_OR_RETURN(const std::shared_ptr<const PreparedPsf> prepared,
                         engine->Prepare(input.psf, plan.solve_grid, plan.bundle_size, stop));
  outcome.stages.push_back({"prepare", SecondsSince(prepare_start)});

  NotifyState(observer, "extracting");
  spexd::ExtractRequest request = MakeExtractRequest(plan, input, prepared);
  request.stop = stop;
  FrameAssembler assembler(plan.output_grid, plan.fibres, plan.model ? input.image->rows() : 0,
                           plan.model ? input.image->columns() : 0);
  int done = 0;
  const BundleSink sink = [&](BundleResult result) -> absl::Status {
    const BundleSpectra bundle = ToBundleSpectra(std::move(result));
    SPEXD_RETURN_IF_ERROR(assembler.Add(bundle));
    if (observer != nullptr) observer->OnBundle(bundle, ++done, plan.bundles);
    return absl::OkStatus();
  };
  SPEXD_ASSIGN_OR_RETURN(const StageTimes times, engine->Extract(request, sink));
  outcome.engine_seconds = SecondsSince(engine_start);
  if (!assembler.complete()) return absl::InternalError("the engine ended without all bundles");
  for (Stage stage : kAllStages) outcome.stages.push_back({StageName(stage), times[stage]});

  outcome.summary = assembler.Summarise(plan.scores);
  if (plan.model) outcome.model = assembler.Model();
  outcome.frame = assembler.Finish(std::move(plan.origin), outcome.summary);
  outcome.engine = absl::StrCat(engine->Info().kind, " (", engine->Info().device, ")");
  outcome.psf_hash = input.psf->content_hash;
  outcome.run_seconds = SecondsSince(start);
  return outcome;
}

}  // namespace spexd::client
