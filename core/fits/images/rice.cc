#include "core/fits/images/rice.h"

#include <algorithm>
#include <type_traits>

#include "core/fits/hdu/byte_order.h"
#include "core/fits/images/coding.h"

namespace spexd {
namespace {

// Number of values decoded between two checks of the stop token.
constexpr size_t kValuesAtOnce = 1 << 16;

// A reader of bits, most significant first. Zeros follow the end; overrun() tells whether they were read.
class BitReader {
 public:
  explicit BitReader(absl::string_view bytes) : at_(bytes.data()), end_(bytes.data() + bytes.size()) {}

  // Makes at least 56 bits available.
  void Refill() {
    if (end_ - at_ >= 8) {
      bits_ |= LoadBigEndian<uint64_t>(at_) >> count_;
      at_ += (63 - count_) >> 3;
      count_ |= 56;
      return;
    }
    while (count_ <= 56) {
      if (at_ < end_) {
        bits_ |= uint64_t{static_cast<unsigned char>(*at_++)} << (56 - count_);
      } else {
        beyond_ += 8;
      }
      count_ += 8;
    }
  }
  bool overrun() const { return beyond_ > count_; }

  // Reads `count` bits. REQUIRES: as many are available, count <= 32.
  uint32_t Take(int count) {
    const uint32_t value = static_cast<uint32_t>((bits_ >> 1) >> (63 - count));
    Skip(count);
    return value;
  }

  // Counts the zeros before the next one, and skips that one, too.
  uint64_t TakeZeros() {
    for (uint64_t zeros = 0;;) {
      const int leading = bits_ == 0 ? 64 : __builtin_clzll(bits_);
      if (leading < count_) {
        Skip(leading + 1);
        return zeros + static_cast<uint64_t>(leading);
      }
      if (overrun()) return zeros;
      zeros += static_cast<uint64_t>(count_);
      Skip(count_);
      Refill();
    }
  }

  // Reads zeros, a one and `split` bits. REQUIRES: a refill just before. The common case needs no second
  // refill.
  uint64_t TakeCode(int split) {
    const int leading = bits_ == 0 ? 64 : __builtin_clzll(bits_);
    if (leading + 1 + split <= 56) [[likely]] {
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
  void Skip(int count) {
    bits_ = count < 64 ? bits_ << count : 0;
    count_ -= count;
  }

  const char* at_;
  const char* end_;
  uint64_t bits_ = 0;  // left-aligned
  int count_ = 0;      // number of them that are bits of the stream
  int beyond_ = 0;     // number of zeros after the end that were read or are in bits_
};

}  // namespace

template <typename Value>
bool DecodeRice(absl::string_view coded, int block, absl::Span<Value> out, const std::stop_token& stop) {
  using Bits = std::make_unsigned_t<Value>;
  constexpr int kSplitBits = SplitBits(sizeof(Value));
  constexpr int kFullSplit = FullSplit(sizeof(Value));
  if (coded.size() < sizeof(Value)) return out.empty();
  Bits last = LoadBigEndian<Bits>(coded.data());
  BitReader reader(coded.substr(sizeof(Value)));
  size_t look = 0;
  for (size_t begin = 0; begin < out.size(); begin += static_cast<size_t>(block)) {
    if (begin >= look) {
      if (stop.stop_requested()) return false;
      look = begin + kValuesAtOnce;
    }
    const size_t end = std::min(out.size(), begin + static_cast<size_t>(block));
    reader.Refill();
    const int split = static_cast<int>(reader.Take(kSplitBits)) - 1;
    if (split < 0) {
      std::fill(out.begin() + begin, out.begin() + end, static_cast<Value>(last));
    } else if (split >= kFullSplit) {
      for (size_t k = begin; k < end; ++k) {
        reader.Refill();
        last = static_cast<Bits>(last + Unfold<Bits>(reader.Take(8 * sizeof(Value))));
        out[k] = static_cast<Value>(last);
      }
    } else {
      for (size_t k = begin; k < end; ++k) {
        reader.Refill();
        last = static_cast<Bits>(last + Unfold<Bits>(reader.TakeCode(split)));
        out[k] = static_cast<Value>(last);
      }
    }
    if (reader.overrun()) return false;
  }
  return true;
}

template bool DecodeRice<uint8_t>(absl::string_view, int, absl::Span<uint8_t>, const std::stop_token&);
template bool DecodeRice<int16_t>(absl::string_view, int, absl::Span<int16_t>, const std::stop_token&);
template bool DecodeRice<int32_t>(absl::string_view, int, absl::Span<int32_t>, const std::stop_token&);

int64_t MostRiceValues(size_t coded_bytes, int byte_pix, int block) {
  const int64_t blocks = static_cast<int64_t>(coded_bytes) * 8 / SplitBits(static_cast<size_t>(byte_pix)) + 1;
  return blocks * block;
}

}  // namespace spexd
