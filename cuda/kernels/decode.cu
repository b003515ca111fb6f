// Decodes a coded image into pixels and ivar. One thread decodes a row, because the position of a value in
// the bits depends on all values before it. Meanwhile the other warps of its block scale and write the values
// decoded in the previous step.
//
// Floor for a frame of 4128 x 4114 pixels: 22 MB of codes read, 135 MB of pixels and 34 MB of mask written,
// 0.05 ms. The limit is the chain of a row: 4114 values of some 600 cycles each, 1.6 ms.
#include <limits>
#include <type_traits>

#include "core/fits/images/coding.h"
#include "core/model/mask_rule.h"
#include "cuda/kernels/common/device.cuh"
#include "cuda/kernels/decode.h"

namespace spexd::cuda {
namespace {

constexpr int kThreads = 256;  // threads of a block where the mask rule is applied
constexpr int kWriters = 3;    // warps that write beside the one that decodes
constexpr int kRing = 64;  // words of a row copied ahead: twice the most that 32 values usually need

// The bits of a row, the most significant first, then zeros.
class RowBits {
 public:
  // `ring`: shared memory for [kRing, lane].
  __device__ RowBits(const uint32_t* words, int64_t begin, int32_t size, uint32_t* ring)
      : words_(words + begin / 4),
        ring_(ring + threadIdx.x % kWarp),
        end_(static_cast<int>((begin + size + 3) / 4 - begin / 4)),
        left_(int64_t{size} * 8) {
    Prefetch();
    Prefetch();
    Refill();
    const int skipped = static_cast<int>(begin % 4) * 8;
    bits_ <<= skipped;
    count_ -= skipped;
  }

  __device__ bool overrun() const { return left_ < 0; }

  // Waits for the words that the previous call requested, and requests as many as the ring has room for.
  // Lanes need words at different times: if each fetched its own when needed, all would wait at nearly every
  // value.
  __device__ void Prefetch() {
    CopyAsyncWait<0>();
    ready_ = asked_;
    for (asked_ = max(asked_, at_); asked_ < min(at_ + kRing, end_); ++asked_)
      CopyAsyncOrZero<sizeof(uint32_t)>(SharedAddressOf(Slot(asked_)), words_ + asked_, true);
    CopyAsyncCommit();
  }
  // Makes at least 32 bits available.
  __device__ void Refill() {
    if (count_ > 32) return;
    bits_ |= static_cast<uint64_t>(Fetch()) << (32 - count_);
    count_ += 32;
  }
  // Takes `count` bits. REQUIRES: a refill just before; count <= 32.
  __device__ uint32_t Take(int count) {
    const uint32_t value = static_cast<uint32_t>((bits_ >> 1) >> (63 - count));
    Skip(count);
    return value;
  }
  // Takes a code: zeros, a one and `split` bits. REQUIRES: a refill just before.
  __device__ uint64_t TakeCode(int split) {
    const int leading = LeadingZeros(bits_);
    if (leading + 1 + split <= 32) {
      const uint64_t rest = bits_ << (leading + 1);
      const uint64_t value = (static_cast<uint64_t>(leading) << split) | ((rest >> 1) >> (63 - split));
      Skip(leading + 1 + split);
      return value;
    }
    const uint64_t zeros = TakeZeros();
    Refill();
    return (zeros << split) | Take(split);
  }

 private:
  __device__ uint32_t* Slot(int word) const { return ring_ + word % kRing * kWarp; }
  __device__ uint32_t Fetch() {
    if (at_ >= end_) return 0;
    const uint32_t word = at_ < ready_ ? *Slot(at_) : words_[at_];
    ++at_;
    return FromBigEndian(word);
  }
  __device__ void Skip(int count) {
    bits_ = count < 64 ? bits_ << count : 0;
    count_ -= count;
    left_ -= count;
  }
  __device__ uint64_t TakeZeros() {
    for (uint64_t zeros = 0;;) {
      const int leading = LeadingZeros(bits_);
      if (leading < count_) {
        Skip(leading + 1);
        return zeros + leading;
      }
      zeros += count_;
      Skip(count_);
      if (overrun()) return zeros;
      Refill();
    }
  }

  const uint32_t* const words_;  // words of the row
  uint32_t* const ring_;
  const int end_;
  int at_ = 0, asked_ = 0, ready_ = 0;  // the next word; the first not requested, and not surely there
  int64_t left_;                        // bits of the row that are not taken yet
  uint64_t bits_ = 0;                   // left-aligned
  int count_ = 0;                       // bits at hand
};

// Decodes the values of one row, one after the other.
template <typename Value>
class RowDecoder {
 public:
  __device__ RowDecoder(const RowBits& bits, int block) : bits_(bits), block_(block) {
    bits_.Refill();
    last_ = static_cast<Bits>(bits_.Take(8 * sizeof(Value)));
  }
  __device__ void Prefetch() { bits_.Prefetch(); }
  __device__ Value Next() {
    bits_.Refill();
    if (left_ == 0) {
      left_ = block_;
      split_ = static_cast<int>(bits_.Take(SplitBits(sizeof(Value)))) - 1;
      bits_.Refill();
      if (bits_.overrun()) split_ = -1;
    }
    --left_;
    if (split_ >= 0) {
      const uint64_t folded =
          split_ >= FullSplit(sizeof(Value)) ? bits_.Take(8 * sizeof(Value)) : bits_.TakeCode(split_);
      last_ = static_cast<Bits>(last_ + Unfold<Bits>(folded));
    }
    return static_cast<Value>(last_);
  }
  __device__ bool overrun() const { return bits_.overrun(); }

 private:
  using Bits = std::make_unsigned_t<Value>;
  RowBits bits_;
  const int block_;
  int left_ = 0;  // values until the next block
  int split_ = -1;
  Bits last_ = 0;
};

// Scales a value of a plane and writes it.
__device__ void Write(const DecodeArgs& args, int plane, int row, int column, int32_t stored) {
  const CodedRow& coded = args.coded.rows[static_cast<int64_t>(plane) * args.rows + row];
  const int64_t at = static_cast<int64_t>(row) * args.columns + column;
  if (plane == 2) {
    args.mask[at] = static_cast<uint16_t>(static_cast<uint32_t>(stored) +
                                          static_cast<uint32_t>(static_cast<int64_t>(coded.zero)));
    return;
  }
  float* const to = (plane == 0 ? args.image.pixels : args.image.ivar) + at;
  if (coded.plain) {
    *to = __int_as_float(stored);
    return;
  }
  const double value = coded.random < 0 ? stored * coded.scale + coded.zero
                                        : Undithered(stored, args.coded.randoms[coded.random + column],
                                                     coded.scale, coded.zero);
  float pixel = static_cast<float>(value);
  if (coded.exact_zeros && stored == kStoredZero) pixel = 0;
  if (coded.has_blank && stored == coded.blank) pixel = std::numeric_limits<float>::quiet_NaN();
  *to = pixel;
}

// Shared memory of a block.
struct DecodeMemory {
  int32_t values[2][kWarp][kWarp + 1];  // [step % 2, row, column]
  uint32_t ring[kRing * kWarp];
};

// A block takes 32 rows of a plane, in steps of 32 columns: the first warp decodes a step while the others
// write the previous one.
template <typename Value>
__device__ void DecodePlane(const DecodeArgs& args, int plane, DecodeMemory* memory) {
  const int lane = threadIdx.x % kWarp, writer = static_cast<int>(threadIdx.x) / kWarp - 1;
  const int first_row = blockIdx.x * kWarp, rows = min(kWarp, args.rows - first_row);
  const int64_t index = static_cast<int64_t>(plane) * args.rows + first_row + min(lane, rows - 1);
  const CodedRow coded = args.coded.rows[index];
  // Only the first warp has words: it alone may use the ring.
  const RowBits bits(args.coded.words, writer < 0 ? coded.begin : 0, writer < 0 ? coded.size : 0,
                     memory->ring);
  RowDecoder<Value> decoder(bits, args.plane[plane].block);
  const int steps = (args.columns + kWarp - 1) / kWarp;
  for (int step = 0; step <= steps; ++step) {
    if (writer < 0 && step < steps) {
      const int first = step * kWarp, columns = min(kWarp, args.columns - first);
      decoder.Prefetch();
      for (int k = 0; k < columns; ++k) {
        memory->values[step % 2][lane][k] =
            coded.plain ? static_cast<int32_t>(args.coded.words[coded.begin / 4 + first + k])
                        : decoder.Next();
      }
    } else if (writer >= 0 && step > 0) {
      const int column = (step - 1) * kWarp + lane;
      for (int r = writer; r < rows && column < args.columns; r += kWriters)
        Write(args, plane, first_row + r, column, memory->values[(step - 1) % 2][r][lane]);
    }
    __syncthreads();
  }
  if (writer < 0 && !coded.plain && decoder.overrun())
    atomicMin(&args.coded.report->damage, static_cast<uint32_t>(index));
}

__global__ void __launch_bounds__((1 + kWriters) * kWarp) DecodeRows(DecodeArgs args) {
  __shared__ DecodeMemory memory;
  const int plane = blockIdx.y;
  switch (args.plane[plane].byte_pix) {
    case 1:
      return DecodePlane<uint8_t>(args, plane, &memory);
    case 2:
      return DecodePlane<int16_t>(args, plane, &memory);
    default:
      return DecodePlane<int32_t>(args, plane, &memory);
  }
}

__global__ void __launch_bounds__(kThreads) ApplyMaskRule(DecodeArgs args) {
  const int64_t k = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  if (k >= static_cast<int64_t>(args.rows) * args.columns) return;
  const int64_t mask = args.planes > 2 ? args.mask[k] : 0;
  if (IsUsable(args.image.pixels[k], args.image.ivar[k], mask)) return;
  if (IsUnflaggedNegative(args.image.ivar[k], mask)) atomicAdd(&args.coded.report->negative_ivar, 1u);
  args.image.pixels[k] = args.image.ivar[k] = 0;
}

}  // namespace

cudaError_t DecodeImage(const DecodeArgs& args, cudaStream_t stream) {
  const int64_t pixels = static_cast<int64_t>(args.rows) * args.columns;
  const dim3 rows((args.rows + kWarp - 1) / kWarp, args.planes);
  const dim3 all(static_cast<unsigned>((pixels + kThreads - 1) / kThreads));
  return FirstError({Launch(DecodeRows, rows, (1 + kWriters) * kWarp, 0, stream, args),
                     Launch(ApplyMaskRule, all, kThreads, 0, stream, args)});
}

}  // namespace spexd::cuda
