// A coded image as it goes to a device, in one block: the report of its decoding, its rows, its random
// numbers and its bytes.
#ifndef SPEXD_CUDA_PLAN_CODED_BLOCK_H_
#define SPEXD_CUDA_PLAN_CODED_BLOCK_H_

#include <cstddef>
#include <cstdint>

#include "core/model/coded_image.h"

namespace spexd::cuda {

inline constexpr uint32_t kNoDamage = UINT32_MAX;

// What decoding finds. The values here are those before decoding.
struct DecodeReport {
  uint32_t damage = kNoDamage;  // the least [plane, row] whose bytes end too early
  uint32_t negative_ivar = 0;   // pixels for which IsUnflaggedNegative is true
};

// The pieces of a block.
struct CodedBlock {
  DecodeReport* report;
  CodedRow* rows;  // [plane, row]
  float* randoms;
  uint32_t* words;  // the bytes, padded
  int64_t bytes;    // size of the block
};

// Divides a 256-byte aligned block into its pieces. `block` null: computes the size only.
CodedBlock LayOutCoded(int64_t rows, int64_t randoms, int64_t bytes, std::byte* block);
CodedBlock LayOutCoded(const CodedImage& image, std::byte* block);

// A coded block on the device that decodes it, and behind it what else decoding needs.
struct DecodeArrays {
  CodedBlock coded;
  uint16_t* mask;  // [row, column]
  int64_t bytes;   // size of all
};
// Divides a block as LayOutCoded does.
DecodeArrays LayOutDecoding(const CodedImage& image, std::byte* block);
// The most bytes that decoding an image may take.
int64_t MostDecodeBytes(int ccd_rows, int ccd_columns);

// Writes the image's block except its bytes, which the caller copies to `words`, and its report, which each
// upload resets. The block must have the size that LayOutCoded computes.
void PackCoded(const CodedImage& image, std::byte* block);

}  // namespace spexd::cuda

#endif  // SPEXD_CUDA_PLAN_CODED_BLOCK_H_
