// Makes prepared PSFs resident on one device, on a stream of its own, beside the jobs. Where they lie and for
// how long: see residency.h.
#ifndef SPEXD_CUDA_RUNTIME_PSF_STORE_H_
#define SPEXD_CUDA_RUNTIME_PSF_STORE_H_

#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/base/mutex.h"
#include "cuda/runtime/cuda_status.h"
#include "cuda/runtime/device_arena.h"
#include "cuda/runtime/handles.h"
#include "cuda/runtime/nvtx.h"
#include "cuda/runtime/prepared_psf.h"
#include "cuda/runtime/residency.h"

namespace spexd::cuda {

// A PSF on a device, and its construction state. Thread-safe.
class ResidentPsf : public ResidentState {
 public:
  explicit ResidentPsf(int device) : device_(device) {}

  bool Settle() override ABSL_LOCKS_EXCLUDED(mutex_);
  // Waits until whoever makes it has enqueued all of that; not for the device.
  absl::Status WaitUntilEnqueued() ABSL_LOCKS_EXCLUDED(mutex_);
  // Passed once its spots are there. REQUIRES: WaitUntilEnqueued was OK.
  cudaEvent_t ready() const { return ready_.get(); }
  // `ready` has passed, or what would make it never will.
  using ResidentState::NoteSettled;
  // Device time of its making, told once; then 0. REQUIRES: `ready` has passed.
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

// All calls need the device to be current. Whoever's Residency::Taken says `make` calls Make, or Locate and
// MakeSpots, once; after an error nothing runs on the device for that PSF any more, and it is to be
// forgotten.
class PsfStore {
 public:
  // For the current device. The arena, the pool and the domain outlive the store.
  static absl::StatusOr<std::unique_ptr<PsfStore>> Make(const DeviceName& device, const DeviceArena* arena,
                                                        PinnedPool* pool, const NvtxDomain* domain);
  ~PsfStore();

  // Uploads the PSF, places its spots, and waits for what they say of each bundle.
  absl::StatusOr<std::vector<BundleFacts>> Locate(const CudaPreparedPsf& psf, const Residency::Taken& memory);
  // The spots, enqueued.
  absl::Status MakeSpots(const ExtractPlan& plan, const Residency::Taken& memory);
  // Both, enqueued; the PSF has its plan.
  absl::Status Make(const CudaPreparedPsf& psf, const Residency::Taken& memory);
  // In their place, or after them without effect: nobody waits for the PSF any more.
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
  // Waits for the device where `work` fails, so that the memory can go.
  absl::Status Settled(absl::FunctionRef<absl::Status()> work);

  const DeviceName device_;
  const DeviceArena& arena_;
  PinnedPool& pool_;
  const NvtxDomain& domain_;
  std::function<void()> settled_ = [] {};  // outlives what is enqueued: the destructor waits for that
  Stream stream_;
  Mutex mutex_;  // one PSF at a time on the stream, so that its times are its own
};

}  // namespace spexd::cuda

#endif  // SPEXD_CUDA_RUNTIME_PSF_STORE_H_
