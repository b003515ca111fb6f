#include "cuda/memory/device_arena.h"

#include <cuda_runtime_api.h>

#include <iterator>
#include <utility>

#include "absl/strings/str_format.h"
#include "core/base/status_macros.h"

namespace spexd::cuda {

absl::StatusOr<std::unique_ptr<DeviceArena>> DeviceArena::Make(const DeviceName& device, int64_t bytes,
                                                               Mode mode) {
  size_t free = 0, total = 0;
  SPEXD_CUDA_RETURN_IF_ERROR(cudaMemGetInfo(&free, &total), device, "asking for free memory");
  const auto share = static_cast<int64_t>(mode == Mode::kAtOnce ? free / 10 * 9 : free);
  const int64_t most = (bytes > 0 ? bytes : share) / kBlockAlignment * kBlockAlignment;
  if (most <= 0 || (mode == Mode::kAtOnce && static_cast<size_t>(most) > free)) {
    return absl::ResourceExhaustedError(absl::StrFormat("%s: %d bytes of memory asked for, %d of %d are free",
                                                        Text(device), bytes > 0 ? bytes : most, free, total));
  }
  std::unique_ptr<DeviceArena> arena(new DeviceArena(device, most, mode));
  if (mode == Mode::kOnDemand) return arena;
  SPEXD_ASSIGN_OR_RETURN(std::byte* const data, TakeDeviceMemory(device, most));
  MutexLock lock(&arena->mutex_);
  arena->pieces_[0] = {most, data};
  return arena;
}

DeviceArena::~DeviceArena() {
  for (const auto& [offset, piece] : pieces_) cudaFree(piece.data);
}

absl::StatusOr<std::byte*> TakeDeviceMemory(const DeviceName& device, int64_t bytes) {
  void* data = nullptr;
  const cudaError_t error = cudaMalloc(&data, static_cast<size_t>(bytes));
  if (error == cudaSuccess) return static_cast<std::byte*>(data);
  if (error != cudaErrorMemoryAllocation)
    return ToStatus(error, device, absl::StrFormat("taking %d bytes of memory", bytes));
  cudaGetLastError();
  size_t free = 0, total = 0;
  if (cudaMemGetInfo(&free, &total) != cudaSuccess) cudaGetLastError();
  return absl::ResourceExhaustedError(
      absl::StrFormat("%s: %d bytes of memory needed, %d of %d are free", Text(device), bytes, free, total));
}

absl::Status DeviceArena::Back(const Block& block) {
  if (mode_ == Mode::kAtOnce || block.bytes == 0) return absl::OkStatus();
  MutexLock lock(&mutex_);
  const int64_t end = block.offset + block.bytes;
  auto piece = pieces_.upper_bound(block.offset);
  if (piece != pieces_.begin()) --piece;
  while (piece != pieces_.end() && piece->first < end) {
    const int64_t piece_end = piece->first + piece->second.bytes;
    // Only a piece of exactly this size serves: a larger one would also lie behind adjacent blocks.
    if (piece->first == block.offset && piece_end == end) return absl::OkStatus();
    if (piece_end <= block.offset) {
      ++piece;
      continue;
    }
    // The piece belongs to blocks that were returned, so nobody uses it.
    cudaFree(piece->second.data);
    piece = pieces_.erase(piece);
  }
  piece = pieces_.emplace(block.offset, Piece()).first;
  const absl::StatusOr<std::byte*> data = TakeDeviceMemory(device_, block.bytes);
  if (!data.ok()) {
    pieces_.erase(piece);
    return data.status();
  }
  piece->second = {block.bytes, *data};
  return absl::OkStatus();
}

std::byte* DeviceArena::At(const Block& block) const {
  if (block.bytes == 0) return nullptr;
  MutexLock lock(&mutex_);
  const auto piece = std::prev(pieces_.upper_bound(block.offset));
  return piece->second.data + (block.offset - piece->first);
}

}  // namespace spexd::cuda
