// Makes prepared PSFs resident on one device, on its own stream, beside the jobs. residency.h decides where
// they lie and for how long.
#ifndef SPEXD_CUDA_RUNTIME_PSF_STORE_H_
#define SPEXD_CUDA_RUNTIME_PSF_STORE_H_

#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/base/threads/mutex.h"
#include "cuda/memory/cuda_status.h"
#include "cuda/memory/device_arena.h"
#include "cuda/memory/handles.h"
#include "cuda/runtime/nvtx.h"
#include "cuda/runtime/prepared_psf.h"
#include "cuda/runtime/residency.h"

namespace spexd::cuda {

// A PSF on a device, and its construction state. Thread-safe.
class ResidentPsf : public ResidentState {
 public:
  explicit ResidentPsf(int device) : device_(device) {}

  bool Settle() override ABSL_LOCKS_EXCLUDED(mutex_);
  // Waits until the maker has enqueued all work; does not wait for the device.
  absl::Status WaitUntilEnqueued() ABSL_LOCKS_EXCLUDED(mutex_);
  // Event that has passed once the spots are there. REQUIRES: WaitUntilEnqueued was OK.
  cudaEvent_t ready() const { return ready_.get(); }
  // Notes that `ready` has passed, or that nothing will write to the PSF any more.
  using ResidentState::NoteSettled;
  // Device seconds of its construction. The first call returns them, later calls return 0. REQUIRES: `ready`
  // has passed.
  double TakeSeconds() ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  friend class PsfStore;
  cudaError_t MakeEvents();
  // REQUIRES: after an error nothing runs on the device for it any more.
  void End(absl::Status status) ABSL_LOCKS_EXCLUDED(mutex_);

  const int device_;
  PinnedBuffer facts_;
  Event begin_, located_, spots_begin_, ready_;  // set before End
  mutable Mutex mutex_;
  CondVar changed_;
  bool ended_ ABSL_GUARDED_BY(mutex_) = false;
  bool told_ ABSL_GUARDED_BY(mutex_) = false;
  absl::Status status_ ABSL_GUARDED_BY(mutex_);
};

// All calls need the device to be current. A caller whose Residency::Taken says `make` calls Make, or Locate
// and MakeSpots, once. After an error nothing runs on the device for that PSF any more, and the PSF must be
// forgotten.
class PsfStore {
 public:
  // Makes a store for the current device. The arena, the pool and the domain outlive the store.
  static absl::StatusOr<std::unique_ptr<PsfStore>> Make(const DeviceName& device, const DeviceArena* arena,
                                                        PinnedPool* pool, const NvtxDomain* domain);
  ~PsfStore();

  // Uploads the PSF, locates its spots, and waits for each bundle's facts.
  absl::StatusOr<std::vector<BundleFacts>> Locate(const CudaPreparedPsf& psf, const Residency::Taken& memory);
  // Enqueues the spots.
  absl::Status MakeSpots(const ExtractPlan& plan, const Residency::Taken& memory);
  // Enqueues Locate and MakeSpots; the PSF has its plan already.
  absl::Status Make(const CudaPreparedPsf& psf, const Residency::Taken& memory);
  // Called instead of Make, once the caller has filled the memory and waited for the device.
  static void Filled(const Residency::Taken& memory);
  // Ends all waiting for the PSF. Called instead of Make; has no effect after it.
  static void Fail(const Residency::Taken& memory, const absl::Status& status);

  // See DeviceWorker.
  void OnSettled(std::function<void()> settled) { settled_ = std::move(settled); }

  cudaStream_t stream() const { return stream_.get(); }

 private:
  PsfStore(const DeviceName& device, const DeviceArena* arena, PinnedPool* pool, const NvtxDomain* domain)
      : device_(device), arena_(*arena), pool_(*pool), domain_(*domain) {}

  absl::Status EnqueueLocation(const CudaPreparedPsf& psf, const Residency::Taken& memory, ResidentPsf* state)
      ABSL_LOCKS_EXCLUDED(mutex_);
  absl::Status EnqueueAllSpots(const ExtractPlan& plan, const Residency::Taken& memory, ResidentPsf* state)
      ABSL_LOCKS_EXCLUDED(mutex_);
  // Runs `work`. If it fails, waits for the device, so that the memory can be freed.
  absl::Status Settled(absl::FunctionRef<absl::Status()> work);

  const DeviceName device_;
  const DeviceArena& arena_;
  PinnedPool& pool_;
  const NvtxDomain& domain_;
  std::function<void()> settled_ = [] {};  // outlives enqueued work: the destructor waits for that
  Stream stream_;
  Mutex mutex_;  // one PSF at a time uses the stream, so that each has its own times
};

}  // namespace spexd::cuda

#endif  // SPEXD_CUDA_RUNTIME_PSF_STORE_H_
