#include "core/extract/cpu_engine.h"

#include <unistd.h>

#include <algorithm>
#include <exception>
#include <memory>
#include <new>
#include <utility>
#include <vector>

#include "absl/strings/str_format.h"
#include "core/base/cpus.h"
#include "core/base/mutex.h"
#include "core/base/status_macros.h"
#include "core/extract/bundle_trim.h"
#include "core/extract/cpu/bundle_solver.h"
#include "core/extract/cpu/vector_target.h"
#include "core/extract/request_checks.h"
#include "core/extract/rounding.h"
#include "core/extract/worker_pool.h"
#include "core/plan/bundle_plan.h"
#include "core/plan/grid_plan.h"

namespace spexd {
namespace {

class CpuPreparedPsf : public PreparedPsf {
 public:
  CpuPreparedPsf(std::shared_ptr<const Psf> psf, const WavelengthGrid& grid, int bundle_size)
      : psf_(std::move(psf)), grid_(grid), bundle_size_(bundle_size) {
    padded_ = Padded(grid, PadBins(*psf_, grid));
    workspace_bytes_ =
        cpu::BundleSolver::Bytes(*psf_, padded_, std::min(bundle_size, psf_->fibres));
  }
  absl::Status MakePlans(const std::stop_token& stop) {
    for (int bundle = 0; bundle * bundle_size_ < psf_->fibres; ++bundle) {
      SPEXD_ASSIGN_OR_RETURN(BundlePlan plan,
                             MakeBundlePlan(*psf_, padded_, (padded_.count - grid_.count) / 2,
                                            FibresOfBundle(bundle, bundle_size_, psf_->fibres), stop));
      plans_.push_back(plan);
      bytes_ += sizeof(BundlePlan);
    }
    return absl::OkStatus();
  }

  const std::shared_ptr<const Psf>& psf() const override { return psf_; }
  const WavelengthGrid& grid() const override { return grid_; }
  int bundle_size() const override { return bundle_size_; }
  int64_t bytes() const override { return bytes_; }
  bool fine_grid_prior() const override { return IsFineGrid(grid_); }

  const WavelengthGrid& padded() const { return padded_; }
  const std::vector<BundlePlan>& plans() const { return plans_; }
  int64_t workspace_bytes() const { return workspace_bytes_; }

 private:
  std::shared_ptr<const Psf> psf_;
  WavelengthGrid grid_, padded_;
  int bundle_size_;
  std::vector<BundlePlan> plans_;
  int64_t bytes_ = 0, workspace_bytes_ = 0;
};

// What the bundles of one job share while they run.
class Job {
 public:
  Job(const ExtractRequest& request, const BundleSink& sink) : request_(request), sink_(sink) {}

  // Whether there is any use in going on.
  bool Stopped() ABSL_LOCKS_EXCLUDED(mutex_) {
    {
      MutexLock lock(&mutex_);
      if (!status_.ok()) return true;
    }
    if (!request_.stop.stop_requested()) return false;
    Fail(absl::CancelledError("the job was cancelled"));
    return true;
  }

  void Deliver(BundleResult result) ABSL_LOCKS_EXCLUDED(sink_mutex_, mutex_) {
    MutexLock lock(&sink_mutex_);
    if (Stopped()) return;
    absl::Status status = sink_(std::move(result));
    if (!status.ok()) Fail(std::move(status));
  }

  void Fail(absl::Status status) ABSL_LOCKS_EXCLUDED(mutex_) {
    MutexLock lock(&mutex_);
    if (status_.ok()) status_ = std::move(status);
  }

  void Begin() ABSL_LOCKS_EXCLUDED(mutex_) {
    MutexLock lock(&mutex_);
    ++running_;
  }
  void End(const StageTimes& times) ABSL_LOCKS_EXCLUDED(mutex_) {
    MutexLock lock(&mutex_);
    times_ += times;
    if (--running_ == 0) done_.NotifyAll();
  }

  absl::StatusOr<StageTimes> Wait() ABSL_LOCKS_EXCLUDED(mutex_) {
    MutexLock lock(&mutex_);
    while (running_ > 0) done_.Wait(&mutex_);
    if (!status_.ok()) return status_;
    return times_;
  }

 private:
  const ExtractRequest& request_;
  const BundleSink& sink_;
  Mutex sink_mutex_;  // one bundle at a time
  Mutex mutex_;
  CondVar done_;
  int running_ ABSL_GUARDED_BY(mutex_) = 0;
  absl::Status status_ ABSL_GUARDED_BY(mutex_);
  StageTimes times_ ABSL_GUARDED_BY(mutex_);
};

class CpuEngine : public Engine {
 public:
  CpuEngine(int threads, int64_t max_workspace_bytes)
      : max_workspace_bytes_(max_workspace_bytes), shares_(threads), solvers_(threads), pool_(threads) {}

  EngineInfo Info() const override {
    const int threads = static_cast<int>(solvers_.size());
    return {"cpu",
            absl::StrFormat("%s, %d thread%s", cpu::VectorTargetName(), threads, threads == 1 ? "" : "s"),
            threads, max_workspace_bytes_};
  }

  absl::StatusOr<std::shared_ptr<const PreparedPsf>> Prepare(std::shared_ptr<const Psf> psf,
                                                             const WavelengthGrid& grid,
                                                             int bundle_size, std::stop_token stop) override {
    SPEXD_RETURN_IF_ERROR(CheckPreparation(*psf, grid, bundle_size));
    // The spots alone, before anything is taken.
    const double least =
        8.0 * psf->spot_rows() * psf->spot_columns() * grid.count * std::min(bundle_size, psf->fibres);
    if (least > max_workspace_bytes_) return TooLarge(bundle_size, static_cast<int64_t>(least));
    auto prepared = std::make_shared<CpuPreparedPsf>(std::move(psf), grid, bundle_size);
    if (prepared->workspace_bytes() > max_workspace_bytes_)
      return TooLarge(bundle_size, prepared->workspace_bytes());
    SPEXD_RETURN_IF_ERROR(prepared->MakePlans(stop));
    return prepared;
  }

  absl::StatusOr<StageTimes> Extract(const ExtractRequest& request, const BundleSink& sink) override {
    const auto* prepared = dynamic_cast<const CpuPreparedPsf*>(request.prepared.get());
    if (prepared == nullptr) return absl::InvalidArgumentError("prepared PSF: not made by this engine");
    SPEXD_RETURN_IF_ERROR(CheckRequest(request));
    Job job(request, sink);
    const int size = prepared->bundle_size();
    for (int bundle = request.fibres.first / size; bundle * size < request.fibres.end(); ++bundle) {
      job.Begin();
      pool_.Run([this, prepared, &request, &job, bundle](int worker) {
        StageTimes times;
        if (!job.Stopped()) {
          BundleResult result = Solve(*prepared, request, bundle, worker, &times);
          Trim(request.fibres, &result);
          if (request.float32) KeepFloat32(&result);
          job.Deliver(std::move(result));
        }
        job.End(times);
      });
    }
    return job.Wait();
  }

 private:
  absl::Status TooLarge(int bundle_size, int64_t bytes) const {
    return absl::ResourceExhaustedError(absl::StrFormat(
        "workspace of a bundle of %d fibres: %d bytes, the limit is %d; use a coarser or shorter grid or "
        "smaller bundles",
        bundle_size, bytes, max_workspace_bytes_));
  }

  BundleResult Solve(const CpuPreparedPsf& prepared, const ExtractRequest& request, int bundle, int worker,
                     StageTimes* times) {
    const BundlePlan& plan = prepared.plans()[bundle];
    // Each worker may hold one share of the memory; a larger bundle waits for several.
    const int threads = static_cast<int>(solvers_.size());
    const int64_t share = std::max<int64_t>(max_workspace_bytes_ / threads, 1);
    const int64_t bytes = prepared.workspace_bytes();
    const int shares = static_cast<int>(std::clamp<int64_t>((bytes + share - 1) / share, 1, threads));
    shares_.Take(shares);
    BundleResult result;
    // Only memory can run out in there; a bundle that it happens to is reported, and the job goes on.
    try {
      if (solvers_[worker] == nullptr) solvers_[worker] = std::make_unique<cpu::BundleSolver>();
      absl::StatusOr<BundleResult> solved = solvers_[worker]->Solve(
          {prepared.psf().get(), request.image.get(), &plan, prepared.padded(), request.psferr,
           request.regularize, prepared.fine_grid_prior(), request.want_model},
          request.stop, times);
      result = solved.ok() ? *std::move(solved)
                           : FailedBundle(plan.fibres, prepared.grid().count, solved.status());
    } catch (const std::bad_alloc&) {
      result =
          FailedBundle(plan.fibres, prepared.grid().count, absl::ResourceExhaustedError("out of memory"));
    } catch (const std::exception& error) {
      result = FailedBundle(plan.fibres, prepared.grid().count, absl::InternalError(error.what()));
    }
    result.bundle = bundle;
    if (shares > 1) solvers_[worker].reset();
    shares_.Return(shares);
    return result;
  }

  const int64_t max_workspace_bytes_;
  Shares shares_;
  std::vector<std::unique_ptr<cpu::BundleSolver>> solvers_;  // one of each worker, touched by it alone
  WorkerPool pool_;                                          // last: its threads end first
};

}  // namespace

std::unique_ptr<Engine> MakeCpuEngine(const CpuEngineOptions& options) {
  const int threads = options.threads > 0 ? options.threads : AvailableCpus();
  const int64_t memory = static_cast<int64_t>(sysconf(_SC_PHYS_PAGES)) * sysconf(_SC_PAGESIZE);
  return std::make_unique<CpuEngine>(
      threads, options.max_workspace_bytes > 0 ? options.max_workspace_bytes : memory / 2);
}

}  // namespace spexd
