#include "cuda/memory/block_allocator.h"

#include <algorithm>
#include <iterator>
#include <limits>

namespace spexd::cuda {

int64_t Aligned(int64_t bytes) {
  constexpr int64_t kMax = std::numeric_limits<int64_t>::max();
  if (bytes > kMax - (kBlockAlignment - 1)) return kMax;
  return (bytes + kBlockAlignment - 1) / kBlockAlignment * kBlockAlignment;
}

BlockAllocator::BlockAllocator(int64_t bytes)
    : bytes_(std::max<int64_t>(bytes, 0) / kBlockAlignment * kBlockAlignment), free_bytes_(bytes_) {
  if (bytes_ > 0) free_[0] = bytes_;
}

std::optional<Block> BlockAllocator::Take(int64_t bytes, End end) {
  const int64_t wanted = Aligned(bytes);
  if (wanted == 0) return Block();
  auto best = free_.end();
  for (auto hole = free_.begin(); hole != free_.end(); ++hole) {
    if (hole->second >= wanted && (best == free_.end() || hole->second < best->second)) best = hole;
  }
  if (best == free_.end()) return std::nullopt;
  const int64_t left = best->second - wanted;
  const Block block = {end == End::kLow ? best->first : best->first + left, wanted};
  if (end == End::kLow) {
    free_.erase(best);
    if (left > 0) free_[block.offset + wanted] = left;
  } else if (left > 0) {
    best->second = left;
  } else {
    free_.erase(best);
  }
  free_bytes_ -= wanted;
  return block;
}

void BlockAllocator::Return(const Block& block) {
  if (block.bytes == 0) return;
  auto hole = free_.emplace(block.offset, block.bytes).first;
  free_bytes_ += block.bytes;
  if (const auto next = std::next(hole); next != free_.end() && hole->first + hole->second == next->first) {
    hole->second += next->second;
    free_.erase(next);
  }
  if (hole == free_.begin()) return;
  const auto previous = std::prev(hole);
  if (previous->first + previous->second == hole->first) {
    previous->second += hole->second;
    free_.erase(hole);
  }
}

int64_t BlockAllocator::largest_free() const {
  int64_t most = 0;
  for (const auto& [offset, bytes] : free_) most = std::max(most, bytes);
  return most;
}

}  // namespace spexd::cuda
