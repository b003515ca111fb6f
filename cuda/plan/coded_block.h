// A coded image as it goes to a device, in one piece: what tells of damage, rows, random numbers, bytes.
#ifndef SPEXD_CUDA_PLAN_CODED_BLOCK_H_
#define SPEXD_CUDA_PLAN_CODED_BLOCK_H_

#include <cstddef>
#include <cstdint>

#include "core/model/coded_image.h"

namespace spexd::cuda {

inline constexpr uint32_t kNoDamage = UINT32_MAX;

// The pieces of a block. `damage` is the least [plane, row] whose bytes end too early, or kNoDamage.
struct CodedBlock {
  uint32_t* damage;
  CodedRow* rows;  // [plane, row]
  float* randoms;
  uint32_t* words;  // the bytes, with some more behind them
  int64_t bytes;    // size of the block
};

// `block` null: computes the size only. The block is to be 256-byte aligned.
CodedBlock LayOutCoded(int64_t rows, int64_t randoms, int64_t bytes, std::byte* block);
CodedBlock LayOutCoded(const CodedImage& image, std::byte* block);
// Size of the largest block that an image may have.
int64_t MostCodedBytes(int ccd_rows, int ccd_columns);

// Writes the image's block but for its bytes, which go to `words`. The block must have the size that
// LayOutCoded says.
void PackCoded(const CodedImage& image, std::byte* block);

}  // namespace spexd::cuda

#endif  // SPEXD_CUDA_PLAN_CODED_BLOCK_H_
