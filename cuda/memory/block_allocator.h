// Allocates parts of one large block. It handles offsets only and touches no memory, so it can be tested
// anywhere.
#ifndef SPEXD_CUDA_MEMORY_BLOCK_ALLOCATOR_H_
#define SPEXD_CUDA_MEMORY_BLOCK_ALLOCATOR_H_

#include <cstdint>
#include <map>
#include <optional>

namespace spexd::cuda {

inline constexpr int64_t kBlockAlignment = 256;

// Returns `bytes` rounded up to a multiple of kBlockAlignment; the largest int64 if that overflows. REQUIRES:
// bytes >= 0.
int64_t Aligned(int64_t bytes);

struct Block {
  int64_t offset = 0;
  int64_t bytes = 0;  // aligned; 0: none

  friend bool operator==(const Block& a, const Block& b) = default;
};

// A best-fit allocator; among equal holes it takes the lowest offset. Returned blocks join free neighbours.
// Not thread-safe.
class BlockAllocator {
 public:
  // The end of the hole at which a block is taken. Holes stay larger if long-lived and short-lived blocks are
  // taken from opposite ends.
  enum class End { kLow, kHigh };

  explicit BlockAllocator(int64_t bytes);

  // Returns nothing if no hole is large enough, and an empty block for 0 bytes.
  std::optional<Block> Take(int64_t bytes, End end = End::kLow);
  // REQUIRES: Take returned the block, and it was not returned since.
  void Return(const Block& block);

  int64_t bytes() const { return bytes_; }
  int64_t free_bytes() const { return free_bytes_; }
  int64_t largest_free() const;

 private:
  const int64_t bytes_;
  int64_t free_bytes_;
  std::map<int64_t, int64_t> free_;  // offset -> bytes; no two free blocks are adjacent
};

}  // namespace spexd::cuda

#endif  // SPEXD_CUDA_MEMORY_BLOCK_ALLOCATOR_H_
