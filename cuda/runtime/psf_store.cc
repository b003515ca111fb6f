#include "cuda/runtime/psf_store.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "core/base/status_macros.h"
#include "cuda/kernels/common/checked.h"

namespace spexd::cuda {

// ---- ResidentPsf

bool ResidentPsf::Settle() {
  if (settled()) return true;
  {
    MutexLock lock(&mutex_);
    if (!ended_) return false;
  }
  cudaError_t error = cudaSetDevice(device_);
  if (error == cudaSuccess) error = cudaEventQuery(ready_.get());
  if (error != cudaSuccess) cudaGetLastError();
  if (error != cudaErrorNotReady) NoteSettled();
  return settled();
}

absl::Status ResidentPsf::WaitUntilEnqueued() {
  MutexLock lock(&mutex_);
  while (!ended_) changed_.Wait(&mutex_);
  return status_;
}

double ResidentPsf::TakeSeconds() {
  {
    MutexLock lock(&mutex_);
    if (std::exchange(told_, true)) return 0;
  }
  return SecondsBetween(begin_, located_) + SecondsBetween(spots_begin_, ready_);
}

cudaError_t ResidentPsf::MakeEvents() {
  for (Event* event : {&begin_, &located_, &spots_begin_, &ready_}) {
    if (const cudaError_t error = MakeEvent(event); error != cudaSuccess) return error;
  }
  return cudaSuccess;
}

void ResidentPsf::End(absl::Status status) {
  MutexLock lock(&mutex_);
  if (ended_) return;
  ended_ = true;
  status_ = std::move(status);
  if (!status_.ok()) NoteSettled();
  changed_.NotifyAll();
}

// ---- PsfStore

absl::StatusOr<std::unique_ptr<PsfStore>> PsfStore::Make(const DeviceName& device, const DeviceArena* arena,
                                                         PinnedPool* pool, const NvtxDomain* domain) {
  std::unique_ptr<PsfStore> store(new PsfStore(device, arena, pool, domain));
  int least = 0, greatest = 0;
  SPEXD_CUDA_RETURN_IF_ERROR(cudaDeviceGetStreamPriorityRange(&least, &greatest), device,
                             "asking for stream priorities");
  SPEXD_CUDA_RETURN_IF_ERROR(MakeStream(greatest, &store->stream_), device, "making a stream");
  return store;
}

PsfStore::~PsfStore() { cudaStreamSynchronize(stream_.get()); }

absl::Status PsfStore::Settled(absl::FunctionRef<absl::Status()> work) {
  IdleGuard guard(stream_.get());
  absl::Status status = work();
  if (status.ok()) guard.Dismiss();
  return status;
}

absl::Status PsfStore::EnqueueLocation(const CudaPreparedPsf& psf, const Residency::Taken& memory,
                                       ResidentPsf* state) {
  const PsfShape& shape = psf.shape();
  std::byte* const block = arena_.At(memory.psf);
  cudaStream_t const stream = stream_.get();
  SPEXD_ASSIGN_OR_RETURN(
      state->facts_, pool_.Take(static_cast<int64_t>(sizeof(BundleFacts)) * std::max(shape.bundles(), 1)));
  // The pool may have made another device current in order to lock memory.
  SPEXD_CUDA_RETURN_IF_ERROR(cudaSetDevice(device_.index), device_, "preparing a PSF");
  SPEXD_CUDA_RETURN_IF_ERROR(state->MakeEvents(), device_, "preparing a PSF, making events");
  MutexLock lock(&mutex_);
  const NvtxRange range(domain_, "locate");
  SPEXD_CUDA_RETURN_IF_ERROR(cudaEventRecord(state->begin_.get(), stream), device_, "preparing a PSF");
  if (kChecked) {
    SPEXD_CUDA_RETURN_IF_ERROR(cudaMemsetAsync(block, 0xFF, static_cast<size_t>(memory.psf.bytes), stream),
                               device_, "preparing a PSF, poisoning its memory");
  }
  SPEXD_CUDA_RETURN_IF_ERROR(cudaMemcpyAsync(block, psf.packed(), static_cast<size_t>(PackedPsfBytes(shape)),
                                             cudaMemcpyHostToDevice, stream),
                             device_, "preparing a PSF, upload");
  SPEXD_CUDA_RETURN_IF_ERROR(
      EnqueueLocate(shape, block, reinterpret_cast<BundleFacts*>(state->facts_.data()), stream), device_,
      "preparing a PSF, placing its spots");
  SPEXD_CUDA_RETURN_IF_ERROR(cudaEventRecord(state->located_.get(), stream), device_, "preparing a PSF");
  if (kChecked) {
    SPEXD_CUDA_RETURN_IF_ERROR(cudaStreamSynchronize(stream), device_, "preparing a PSF, placing its spots");
  }
  return absl::OkStatus();
}

absl::Status PsfStore::EnqueueAllSpots(const ExtractPlan& plan, const Residency::Taken& memory,
                                       ResidentPsf* state) {
  cudaStream_t const stream = stream_.get();
  MutexLock lock(&mutex_);
  const NvtxRange range(domain_, StageName(Stage::kSpots));
  SPEXD_CUDA_RETURN_IF_ERROR(cudaEventRecord(state->spots_begin_.get(), stream), device_, "stage spots");
  SPEXD_CUDA_RETURN_IF_ERROR(EnqueueSpots(plan, arena_.At(memory.psf), stream), device_, "stage spots");
  SPEXD_CUDA_RETURN_IF_ERROR(cudaEventRecord(state->ready_.get(), stream), device_, "stage spots");
  // Tells those who wait for room that the event has passed.
  const auto settled = [](void* notify) { (*static_cast<const std::function<void()>*>(notify))(); };
  SPEXD_CUDA_RETURN_IF_ERROR(cudaLaunchHostFunc(stream, settled, &settled_), device_, "stage spots");
  if (kChecked) SPEXD_CUDA_RETURN_IF_ERROR(cudaStreamSynchronize(stream), device_, "stage spots");
  return absl::OkStatus();
}

absl::StatusOr<std::vector<BundleFacts>> PsfStore::Locate(const CudaPreparedPsf& psf,
                                                          const Residency::Taken& memory) {
  auto* const state = static_cast<ResidentPsf*>(memory.state.get());
  absl::Status status = Settled([&]() -> absl::Status {
    SPEXD_RETURN_IF_ERROR(EnqueueLocation(psf, memory, state));
    return ToStatus(cudaEventSynchronize(state->located_.get()), device_,
                    "preparing a PSF, placing its spots");
  });
  if (!status.ok()) {
    state->End(status);
    return status;
  }
  std::vector<BundleFacts> facts(static_cast<size_t>(psf.shape().bundles()));
  if (!facts.empty()) std::memcpy(facts.data(), state->facts_.data(), facts.size() * sizeof(BundleFacts));
  return facts;
}

absl::Status PsfStore::MakeSpots(const ExtractPlan& plan, const Residency::Taken& memory) {
  auto* const state = static_cast<ResidentPsf*>(memory.state.get());
  absl::Status status = Settled([&] { return EnqueueAllSpots(plan, memory, state); });
  state->End(status);
  return status;
}

absl::Status PsfStore::Make(const CudaPreparedPsf& psf, const Residency::Taken& memory) {
  auto* const state = static_cast<ResidentPsf*>(memory.state.get());
  absl::Status status = Settled([&]() -> absl::Status {
    SPEXD_RETURN_IF_ERROR(EnqueueLocation(psf, memory, state));
    return EnqueueAllSpots(psf.plan(), memory, state);
  });
  state->End(status);
  return status;
}

void PsfStore::Filled(const Residency::Taken& memory) {
  auto* const state = static_cast<ResidentPsf*>(memory.state.get());
  state->NoteSettled();
  state->End(absl::OkStatus());
}

void PsfStore::Fail(const Residency::Taken& memory, const absl::Status& status) {
  static_cast<ResidentPsf*>(memory.state.get())->End(status);
}

}  // namespace spexd::cuda
