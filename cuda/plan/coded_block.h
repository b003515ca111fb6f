// A coded image as it goes to a device, in one piece: the report of its decoding, rows, random numbers,
// bytes.
#ifndef SPEXD_CUDA_PLAN_CODED_BLOCK_H_
#define SPEXD_CUDA_PLAN_CODED_BLOCK_H_

#include <cstddef>
#include <cstdint>

#include "core/model/coded_image.h"

namespace spexd::cuda {

inline constexpr uint32_t kNoDamage = UINT32_MAX;

// What decoding finds. It begins with these values.
struct DecodeReport {
  uint32_t damage = kNoDamage;  // the least [plane, row] whose bytes end too early
  uint32_t negative_ivar = 0;   // pixels that IsUnflaggedNegative is true of
};

// The pieces of a block.
struct CodedBlock {
  DecodeReport* report;
  CodedRow* rows;  // [plane, row]
  float* randoms;
  uint32_t* words;  // the bytes, with some more behind them
  int64_t bytes;    // size of the block
};

// `block` null: computes the size only. The block is to be 256-byte aligned.
CodedBlock LayOutCoded(int64_t rows, int64_t randoms, int64_t bytes, std::byte* block);
CodedBlock LayOutCoded(const CodedImage& image, std::byte* block);

// A block where it is decoded, and behind it what decoding needs besides.
struct DecodeArrays {
  CodedBlock coded;
  uint16_t* mask;  // [row, column]
  int64_t bytes;   // size of all
};
// As LayOutCoded.
DecodeArrays LayOutDecoding(const CodedImage& image, std::byte* block);
// The most bytes that decoding an image may take.
int64_t MostDecodeBytes(int ccd_rows, int ccd_columns);

// Writes the image's block but for its bytes, which go to `words`, and its report, which begins anew with
// each upload. The block must have the size that LayOutCoded says.
void PackCoded(const CodedImage& image, std::byte* block);

}  // namespace spexd::cuda

#endif  // SPEXD_CUDA_PLAN_CODED_BLOCK_H_
