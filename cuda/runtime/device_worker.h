// One GPU: its memory, its streams, the PSFs on it, and whether it still works.
#ifndef SPEXD_CUDA_RUNTIME_DEVICE_WORKER_H_
#define SPEXD_CUDA_RUNTIME_DEVICE_WORKER_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/base/mutex.h"
#include "core/extract/engine.h"
#include "cuda/runtime/device_arena.h"
#include "cuda/runtime/device_choice.h"
#include "cuda/runtime/dispatcher.h"
#include "cuda/runtime/job_slot.h"
#include "cuda/runtime/nvtx.h"
#include "cuda/runtime/pipeline.h"
#include "cuda/runtime/psf_store.h"

namespace spexd::cuda {

// A staged job: all that a device needs of it.
struct StagedJob {
  std::string name;  // for messages and profilers
  const CudaPreparedPsf* psf = nullptr;
  JobShape shape;
  const std::byte* image = nullptr;  // pinned: pixels, then ivar
  std::byte* output = nullptr;       // pinned, OutputBytes
  std::stop_token stop;
  // Called by the thread that runs the job, in order, with the number of its bundles that are on the host.
  std::function<void(int bundles)> arrived;
};

// Thread-safe. The dispatcher manages memory and slots; every caller holds a lease on this device.
class DeviceWorker {
 public:
  struct Options {
    int64_t memory_bytes = 0;  // 0: see DeviceArena
    bool on_demand = false;    // see DeviceArena
    int jobs = 1;              // slots
    int shared_bytes = 0;      // PlanOptions::shared_bytes, for all jobs
  };
  // The pool outlives the worker.
  static absl::StatusOr<std::unique_ptr<DeviceWorker>> Make(const FoundDevice& device, const Options& options,
                                                            PinnedPool* pool);
  ~DeviceWorker();

  // `settled` is called whenever the device has finished writing a PSF, from a thread of CUDA's. It must be
  // short and must not call CUDA. Set it before the first job.
  void OnSettled(std::function<void()> settled) { store_->OnSettled(std::move(settled)); }

  const DeviceName& name() const { return name_; }
  int64_t memory_bytes() const { return arena_->bytes(); }
  // Not OK once the context is lost; it stays so.
  absl::Status health() const ABSL_LOCKS_EXCLUDED(mutex_);

  // Uploads a PSF and waits for each bundle's facts. The lease must say that the PSF is to be made.
  absl::StatusOr<std::vector<BundleFacts>> Locate(const CudaPreparedPsf& psf, Lease* lease);
  // Enqueues the making of its spots. REQUIRES: Locate.
  absl::Status MakeSpots(const CudaPreparedPsf& psf, Lease* lease);

  // Runs the job and waits for its output; `arrived` reports the progress. Afterwards nothing on the device
  // uses the lease's memory. A stop request cancels it only before anything is enqueued: later the device
  // would have to be waited for all the same.
  absl::StatusOr<StageTimes> Run(const StagedJob& job, Lease* lease);

 private:
  DeviceWorker(DeviceName name, PinnedPool* pool) : name_(std::move(name)), pool_(*pool) {}

  absl::Status Start(const Options& options);
  // Makes the device current; Unavailable if it failed before.
  absl::Status Enter();
  absl::Status Enqueue(const StagedJob& job, const Lease& lease, JobSlot* slot);
  absl::Status EnqueueStages(const StagedJob& job, const Lease& lease, JobSlot* slot);
  absl::Status EnqueueDownloads(const StagedJob& job, const std::byte* output, JobSlot* slot);
  absl::Status Wait(const StagedJob& job, const JobSlot& slot);
  // Passes on the result of a call, and notes an error that loses the context.
  absl::Status Noted(absl::Status status) ABSL_LOCKS_EXCLUDED(mutex_);

  const DeviceName name_;
  PinnedPool& pool_;
  const NvtxDomain domain_;
  std::unique_ptr<DeviceArena> arena_;
  std::vector<JobSlot> slots_;
  std::unique_ptr<PsfStore> store_;
  mutable Mutex mutex_;
  absl::Status health_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace spexd::cuda

#endif  // SPEXD_CUDA_RUNTIME_DEVICE_WORKER_H_
