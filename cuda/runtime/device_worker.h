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
#include "core/base/threads/mutex.h"
#include "core/extract/engine.h"
#include "cuda/memory/device_arena.h"
#include "cuda/memory/device_frame.h"
#include "cuda/memory/device_memory.h"
#include "cuda/runtime/cuda_image.h"
#include "cuda/runtime/devices/device_choice.h"
#include "cuda/runtime/dispatcher.h"
#include "cuda/runtime/job_slot.h"
#include "cuda/runtime/nvtx.h"
#include "cuda/runtime/pipeline.h"
#include "cuda/runtime/psf_store.h"
#include "cuda/traces/measure.h"

namespace spexd::cuda {

// A staged job: all that a device needs of it.
struct StagedJob {
  std::string name;  // for messages and profilers
  const CudaPreparedPsf* psf = nullptr;
  JobShape shape;
  const CudaImage* image = nullptr;
  std::byte* output = nullptr;  // pinned, OutputBytes
  FibreRange asked;             // fibres of the whole job, of which this may be a part
  // Not null: spectra stay on the device, too. Made by the first part that runs.
  std::shared_ptr<DeviceFrame>* kept = nullptr;
  // A lack of room for `kept` is no error, and nobody is using the frame when it is given back.
  bool keep_if_room = false;
  std::stop_token stop;
  // Called by the thread that runs the job, in order, with the number of its bundles that are on the host.
  std::function<void(int bundles)> arrived;
};

// A measurement of trace shifts whose image is staged.
struct StagedMeasurement {
  std::string name;
  const Psf* psf = nullptr;
  CudaImage* image = nullptr;  // receives what stays on the device, if there is room
  const traces::PreparedReference* reference = nullptr;  // null: none
  const TraceShiftOptions* options = nullptr;
  std::stop_token stop;

  // Sizes of the lease: its PSF block, which all measurements with the PSF share, and its work block.
  static int64_t PsfBytes(const Psf& psf) { return PreparedTraces::Bytes(psf); }
  static int64_t WorkBytes(const Psf& psf, const TraceShiftOptions& options);
};

// Thread-safe. The dispatcher manages memory and slots; every caller holds a lease on this device.
class DeviceWorker {
 public:
  struct Options {
    int64_t memory_bytes = 0;  // 0: see DeviceArena
    int64_t kept_bytes = 0;    // most bytes besides, for spectra that stay; 0: what is free
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
  // Enqueues the computation of the PSF's spots. REQUIRES: Locate was called.
  absl::Status MakeSpots(const CudaPreparedPsf& psf, Lease* lease);

  // Runs the job and waits for its output; `arrived` reports the progress. Afterwards nothing on the device
  // uses the lease's memory. A stop request cancels the job only before anything is enqueued, because later
  // the call would have to wait for the device in any case.
  absl::StatusOr<StageTimes> Run(const StagedJob& job, Lease* lease);

  // Measures on the calling thread; a stop request ends it between its stages. Afterwards nothing on the
  // device uses the lease's memory.
  absl::StatusOr<TraceShifts> Measure(const StagedMeasurement& job, Lease* lease);

 private:
  static constexpr int kIdleFrames = 4;
  static constexpr int64_t kMaxImageBytes = int64_t{1} << 30;

  DeviceWorker(DeviceName name, const Options& options, PinnedPool* pool)
      : name_(std::move(name)),
        pool_(*pool),
        product_frames_(name_, {.bytes = options.kept_bytes, .idle = kIdleFrames}),
        shared_frames_(name_, {.bytes = options.kept_bytes, .idle = 0}),
        images_(name_, {.bytes = kMaxImageBytes, .idle = options.jobs}) {}

  absl::Status Start(const Options& options);
  // Makes the device current; Unavailable if it failed before.
  absl::Status Enter();
  // Returns the status of a CUDA call for a job.
  absl::Status Of(absl::string_view job, absl::string_view doing, cudaError_t error) const;
  absl::Status Enqueue(const StagedJob& job, const Lease& lease, JobSlot* slot);
  // Brings the image to `decoded`; a coded one by way of `coded`, which has MostDecodeBytes.
  absl::Status EnqueueImage(absl::string_view job, const CudaImage& image, std::byte* decoded,
                            std::byte* coded, JobSlot* slot);
  absl::StatusOr<TraceShifts> MeasureIn(const StagedMeasurement& job, const PreparedTraces& prepared,
                                        const Residency::Taken& memory, JobSlot* slot);
  absl::Status EnqueueStages(const StagedJob& job, const Lease& lease, JobSlot* slot);
  absl::Status EnqueueKeeping(const StagedJob& job, const std::byte* work, const JobSlot& slot);
  absl::Status EnqueueDownloads(const StagedJob& job, const std::byte* work, JobSlot* slot);
  absl::Status Wait(const StagedJob& job, const JobSlot& slot);
  // Passes on the result of a call, and notes an error that loses the context.
  absl::Status Noted(absl::Status status) ABSL_LOCKS_EXCLUDED(mutex_);

  const DeviceName name_;
  PinnedPool& pool_;
  // Memory of spectra that stay: for products, which no longer use spectra that they give back, and for other
  // libraries, whose streams may still use them then.
  DeviceMemory product_frames_, shared_frames_;
  // Images between the measurement of their trace shifts and their extraction.
  DeviceMemory images_;
  const NvtxDomain domain_;
  std::unique_ptr<DeviceArena> arena_;
  std::vector<JobSlot> slots_;
  std::unique_ptr<PsfStore> store_;
  mutable Mutex mutex_;
  absl::Status health_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace spexd::cuda

#endif  // SPEXD_CUDA_RUNTIME_DEVICE_WORKER_H_
