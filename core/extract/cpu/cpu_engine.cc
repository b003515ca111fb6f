#include "core/extract/cpu/cpu_engine.h"

#include <algorithm>
#include <chrono>
#include <map>
#include <memory>
#include <stop_token>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "core/base/machine/cpus.h"
#include "core/base/machine/memory.h"
#include "core/base/memory/heap.h"
#include "core/base/status_macros.h"
#include "core/base/threads/deadline.h"
#include "core/base/threads/guard.h"
#include "core/base/threads/mutex.h"
#include "core/extract/bundle_trim.h"
#include "core/extract/copy_image.h"
#include "core/extract/correction.h"
#include "core/extract/cpu/bundle_solver.h"
#include "core/extract/cpu/cpu_estimate.h"
#include "core/extract/cpu/vectors/vector_target.h"
#include "core/extract/cpu/worker_pool.h"
#include "core/extract/request_checks.h"
#include "core/extract/rounding.h"
#include "core/plan/bundle_plan.h"
#include "core/plan/grid_plan.h"
#include "core/traces/measure.h"

namespace spexd {
namespace {

// The most memory that a worker keeps for its next bundle: enough for 25 fibres of a frame on a grid of 0.4
// Angstrom.
constexpr int64_t kMaxKeptBytes = int64_t{1} << 30;

// Shares of the memory. The destructor returns them.
class SharesTaken {
 public:
  // Takes `asked` shares, but 1 to `most`; none if a stop comes first.
  SharesTaken(Shares* shares, int asked, int most, const std::stop_token& stop) : shares_(shares) {
    const int count = std::clamp(asked, 1, most);
    if (shares_->Take(count, stop)) count_ = count;
  }
  ~SharesTaken() {
    if (any()) shares_->Return(count_);
  }
  SharesTaken(const SharesTaken&) = delete;
  SharesTaken& operator=(const SharesTaken&) = delete;
  bool any() const { return count_ > 0; }
  int count() const { return count_; }

 private:
  Shares* const shares_;
  int count_ = 0;
};

// A prepared PSF. It holds nothing for a bundle until a job asks for it, so that a few fibres of a large PSF
// take little memory.
class CpuPreparedPsf : public PreparedPsf {
 public:
  CpuPreparedPsf(std::shared_ptr<const Psf> psf, const WavelengthGrid& grid, int bundle_size)
      : psf_(std::move(psf)),
        grid_(grid),
        bundle_size_(bundle_size),
        pad_(PadBins(*psf_, grid)),
        padded_(Padded(grid, pad_)) {}

  const std::shared_ptr<const Psf>& psf() const override { return psf_; }
  const WavelengthGrid& grid() const override { return grid_; }
  int bundle_size() const override { return bundle_size_; }
  int64_t bytes() const override ABSL_LOCKS_EXCLUDED(mutex_) {
    MutexLock lock(&mutex_);
    return static_cast<int64_t>(sizeof(*this) + plans_.size() * (sizeof(int) + sizeof(BundlePlan)));
  }
  bool fine_grid_prior() const override { return IsFineGrid(grid_); }

  const WavelengthGrid& padded() const { return padded_; }

  // The plan of a bundle, made when it is first asked for. If two jobs ask at the same time, both make it.
  absl::StatusOr<BundlePlan> Plan(int bundle, std::stop_token stop) const ABSL_LOCKS_EXCLUDED(mutex_) {
    {
      MutexLock lock(&mutex_);
      if (const auto found = plans_.find(bundle); found != plans_.end()) return found->second;
    }
    SPEXD_ASSIGN_OR_RETURN(
        BundlePlan plan, MakeBundlePlan(*psf_, padded_, pad_,
                                        FibresOfBundle(bundle, bundle_size_, psf_->fibres), std::move(stop)));
    MutexLock lock(&mutex_);
    plans_.emplace(bundle, plan);
    return plan;
  }

 private:
  const std::shared_ptr<const Psf> psf_;
  const WavelengthGrid grid_;
  const int bundle_size_;
  const int pad_;
  const WavelengthGrid padded_;
  mutable Mutex mutex_;
  mutable std::map<int, BundlePlan> plans_ ABSL_GUARDED_BY(mutex_);
};

absl::Status Cancelled() { return absl::CancelledError("the job was cancelled"); }

// The state that the bundles of one job share. If a stop comes while tasks wait in the pool, it outlives the
// call that made it. Those tasks find that the job has ended, and touch neither request nor sink.
class Job {
 public:
  Job(const ExtractRequest& request, const BundleSink& sink)
      : request_(request), sink_(sink), forward_(request.stop, stop_) {}

  const ExtractRequest& request() const { return request_; }
  // The job's stop, requested by its request's token, a failed bundle or the sink.
  std::stop_token stop() const { return stop_.get_token(); }

  void Deliver(BundleResult result) ABSL_LOCKS_EXCLUDED(sink_mutex_, mutex_) {
    MutexLock lock(&sink_mutex_);
    if (stop_.stop_requested()) return Fail(Cancelled());
    if (absl::Status status = sink_(std::move(result)); !status.ok()) Fail(std::move(status));
  }

  // Records an error and stops the job's other bundles. The first error is kept.
  void Fail(absl::Status status) ABSL_LOCKS_EXCLUDED(mutex_) {
    {
      MutexLock lock(&mutex_);
      if (status_.ok()) status_ = std::move(status);
    }
    stop_.request_stop();
  }

  void Queued() ABSL_LOCKS_EXCLUDED(mutex_) {
    MutexLock lock(&mutex_);
    ++queued_;
  }
  // Begins a task. Returns false if the task must not run.
  bool Begin() ABSL_LOCKS_EXCLUDED(mutex_) {
    MutexLock lock(&mutex_);
    --queued_;
    if (stop_.stop_requested() && status_.ok()) status_ = Cancelled();
    if (stop_.stop_requested()) {
      done_.NotifyAll();
      return false;
    }
    ++running_;
    return true;
  }
  void End(const StageTimes& times) ABSL_LOCKS_EXCLUDED(mutex_) {
    MutexLock lock(&mutex_);
    times_ += times;
    --running_;
    done_.NotifyAll();
  }

  // Waits until no task runs and none will run.
  absl::StatusOr<StageTimes> Wait() ABSL_LOCKS_EXCLUDED(mutex_) {
    const WakeOnStop wake(stop(), &mutex_, &done_);
    MutexLock lock(&mutex_);
    while (running_ > 0 || (queued_ > 0 && !stop_.stop_requested())) done_.Wait(&mutex_);
    if (queued_ > 0 && status_.ok()) status_ = Cancelled();
    if (!status_.ok()) return status_;
    return times_;
  }

 private:
  const ExtractRequest& request_;
  const BundleSink& sink_;
  std::stop_source stop_;
  const ForwardStop forward_;
  Mutex sink_mutex_;  // lets the sink take one bundle at a time
  Mutex mutex_;
  CondVar done_;
  int queued_ ABSL_GUARDED_BY(mutex_) = 0, running_ ABSL_GUARDED_BY(mutex_) = 0;
  absl::Status status_ ABSL_GUARDED_BY(mutex_);
  StageTimes times_ ABSL_GUARDED_BY(mutex_);
};

class CpuEngine : public Engine {
 public:
  CpuEngine(int threads, int64_t max_workspace_bytes)
      : max_workspace_bytes_(max_workspace_bytes), shares_(threads), solvers_(threads), pool_(threads) {}

  EngineInfo Info() const override {
    EngineInfo info;
    info.kind = "cpu";
    info.threads = threads();
    info.device =
        absl::StrCat(cpu::VectorTargetName(), ", ", info.threads, " thread", info.threads == 1 ? "" : "s");
    info.workspace_bytes = info.max_bundle_bytes = max_workspace_bytes_;
    return info;
  }

  JobEstimate Estimate(const JobOutline& outline) const override {
    JobEstimate estimate = EstimateForCpu(outline, threads(), max_workspace_bytes_);
    estimate.seconds *= correction_.factor();
    return estimate;
  }

  absl::StatusOr<MeasuredTraces> MeasureTraces(const TraceRequest& request) override {
    return CatchExceptions([&]() -> absl::StatusOr<MeasuredTraces> {
      SPEXD_RETURN_IF_ERROR(CheckImage(request, *request.psf));
      const Workers workers = {request.threads, request.stop};
      const auto start = std::chrono::steady_clock::now();
      Image copy;
      if (request.image == nullptr) {
        SPEXD_ASSIGN_OR_RETURN(copy, CopyImage(request.planes, workers));
      }
      MeasuredTraces measured;
      SPEXD_ASSIGN_OR_RETURN(
          measured.shifts, MeasureTraceShifts(request.image == nullptr ? copy : *request.image, *request.psf,
                                              request.reference.get(), request.options, workers));
      measured.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
      return measured;
    });
  }

  absl::StatusOr<std::shared_ptr<const PreparedPsf>> Prepare(std::shared_ptr<const Psf> psf,
                                                             const WavelengthGrid& grid, int bundle_size,
                                                             std::stop_token stop) override {
    return CatchExceptions([&]() -> absl::StatusOr<std::shared_ptr<const PreparedPsf>> {
      SPEXD_RETURN_IF_ERROR(CheckPreparation(*psf, grid, bundle_size));
      if (stop.stop_requested()) return Cancelled();
      const int64_t least = LeastBytesForCpu(*psf, grid, std::min(bundle_size, psf->fibres));
      if (least > max_workspace_bytes_) return TooLarge(bundle_size, least);
      return std::make_shared<const CpuPreparedPsf>(std::move(psf), grid, bundle_size);
    });
  }

  absl::StatusOr<StageTimes> Extract(const ExtractRequest& request, const BundleSink& sink) override {
    return CatchExceptions([&]() -> absl::StatusOr<StageTimes> {
      const auto* prepared = dynamic_cast<const CpuPreparedPsf*>(request.prepared.get());
      if (prepared == nullptr) return absl::InvalidArgumentError("prepared PSF: not made by this engine");
      SPEXD_RETURN_IF_ERROR(CheckRequest(request));
      if (request.on_device != nullptr) return absl::UnimplementedError(kNoDevices);
      const auto job = std::make_shared<Job>(request, sink);
      absl::StatusOr<StageTimes> times = Run(*prepared, job);
      if (times.ok()) Learn(request, *times);
      return times;
    });
  }

 private:
  int threads() const { return static_cast<int>(solvers_.size()); }

  absl::Status TooLarge(int bundle_size, int64_t bytes) const {
    return absl::ResourceExhaustedError(absl::StrFormat(
        "workspace of a bundle of %d fibres: %d bytes, the limit is %d; use a coarser or shorter grid or "
        "smaller bundles",
        bundle_size, bytes, max_workspace_bytes_));
  }

  // Each worker may hold one share of the memory; a larger bundle waits for several.
  int SharesFor(int64_t bytes) const {
    const int64_t share = std::max<int64_t>(max_workspace_bytes_ / threads(), 1);
    return static_cast<int>(std::min<int64_t>((bytes + share - 1) / share, threads()));
  }

  // Does not throw once a task is queued, because tasks hold references to the caller's request.
  absl::StatusOr<StageTimes> Run(const CpuPreparedPsf& prepared, const std::shared_ptr<Job>& job) {
    const FibreRange fibres = job->request().fibres;
    const int size = prepared.bundle_size();
    for (int bundle = fibres.first / size; bundle * size < fibres.end(); ++bundle) {
      job->Queued();
      try {
        pool_.Run(
            [this, &prepared, job, bundle](int worker) { RunTask(prepared, job.get(), bundle, worker); });
      } catch (...) {
        job->Fail(StatusOfException());
        job->Begin();
        break;
      }
    }
    return job->Wait();
  }

  void RunTask(const CpuPreparedPsf& prepared, Job* job, int bundle, int worker) {
    if (!job->Begin()) return;
    StageTimes times;
    const absl::Status status =
        CatchExceptions([&] { return SolveAndDeliver(prepared, job, bundle, worker, &times); });
    if (!status.ok()) {
      solvers_[worker].reset();  // frees its memory for other jobs
      job->Fail(status);
    }
    job->End(times);
  }

  absl::Status SolveAndDeliver(const CpuPreparedPsf& prepared, Job* job, int bundle, int worker,
                               StageTimes* times) {
    OutsizeWork outsize(kMaxKeptBytes);
    const ExtractRequest& request = job->request();
    const Psf& psf = *prepared.psf();
    const FibreRange fibres = FibresOfBundle(bundle, prepared.bundle_size(), psf.fibres);
    // A plan takes less memory than its bundle, but for some bundles the memory is known only from the plan.
    int64_t bytes = cpu::BundleSolver::Bytes(psf, prepared.padded(), fibres.count);
    auto taken = std::make_unique<SharesTaken>(&shares_, SharesFor(bytes), threads(), job->stop());
    if (!taken->any()) return Cancelled();
    SPEXD_ASSIGN_OR_RETURN(const BundlePlan plan, prepared.Plan(bundle, job->stop()));
    bytes = cpu::BundleSolver::Bytes(psf, prepared.padded(), plan);
    if (bytes > max_workspace_bytes_) return TooLarge(fibres.count, bytes);
    if (SharesFor(bytes) > taken->count()) {
      taken.reset();  // two tasks that keep some might wait for each other
      taken = std::make_unique<SharesTaken>(&shares_, SharesFor(bytes), threads(), job->stop());
      if (!taken->any()) return Cancelled();
    }
    outsize.Add(bytes);
    if (solvers_[worker] == nullptr) solvers_[worker] = std::make_unique<cpu::BundleSolver>();
    SPEXD_ASSIGN_OR_RETURN(BundleResult result,
                           solvers_[worker]->Solve({prepared.psf().get(), PlanesOf(request), &plan,
                                                    prepared.padded(), request.psferr, request.regularize,
                                                    prepared.fine_grid_prior(), request.want_model},
                                                   job->stop(), times));
    if (taken->count() > 1 || bytes > kMaxKeptBytes) solvers_[worker].reset();
    result.bundle = bundle;
    Trim(request.fibres, &result);
    if (request.float32) KeepFloat32(&result);
    job->Deliver(std::move(result));
    return absl::OkStatus();
  }

  // Learns from the thread time that a job took, to correct later estimates. Other jobs on the same threads
  // do not add to it.
  void Learn(const ExtractRequest& request, const StageTimes& times) {
    correction_.Learn(EstimateForCpu(OutlineOf(request), 1, max_workspace_bytes_).seconds, times.total());
  }

  const int64_t max_workspace_bytes_;
  Correction correction_;
  Shares shares_;
  std::vector<std::unique_ptr<cpu::BundleSolver>> solvers_;  // one for each worker, used by it alone
  WorkerPool pool_;                                          // last member: its threads end first
};

}  // namespace

std::unique_ptr<Engine> MakeCpuEngine(const CpuEngineOptions& options) {
  const int threads = options.threads > 0 ? options.threads : AvailableCpus();
  return std::make_unique<CpuEngine>(
      threads, options.max_workspace_bytes > 0 ? options.max_workspace_bytes : MachineMemory() / 2);
}

}  // namespace spexd
