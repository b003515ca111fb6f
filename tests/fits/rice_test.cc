#include "core/fits/images/rice.h"

#include <fitsio.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <random>
#include <vector>

// CFITSIO's own coders, which its header does not declare.
extern "C" {
int fits_rcomp(int a[], int nx, unsigned char* c, int clen, int nblock);
int fits_rcomp_short(short a[], int nx, unsigned char* c, int clen, int nblock);
int fits_rcomp_byte(signed char a[], int nx, unsigned char* c, int clen, int nblock);
}

namespace spexd {
namespace {

// Returns values of one kind: constant, quiet, noisy or wild.
template <typename Value>
std::vector<Value> Values(int kind, int count, std::mt19937& random) {
  std::vector<Value> values;
  for (int k = 0; k < count; ++k) {
    const uint32_t bits = random();
    switch (kind) {
      case 0:
        values.push_back(static_cast<Value>(7));
        break;
      case 1:
        values.push_back(static_cast<Value>(bits % 4));
        break;
      case 2:
        values.push_back(static_cast<Value>(bits % 1000 == 0 ? bits : bits % 100));
        break;
      default:
        values.push_back(static_cast<Value>(bits));
    }
  }
  return values;
}

template <typename Value, typename Raw, typename Encode>
void ExpectRoundTrips(const Encode& encode) {
  const unsigned seed = 20240217;
  SCOPED_TRACE(seed);
  std::mt19937 random(seed);
  for (int kind = 0; kind < 4; ++kind) {
    for (const int count : {1, 2, 31, 32, 33, 500, 4114}) {
      std::vector<Value> values = Values<Value>(kind, count, random);
      std::vector<unsigned char> coded(static_cast<size_t>(count) * 2 * sizeof(Value) + 100);
      const int size = encode(reinterpret_cast<Raw*>(values.data()), count, coded.data(),
                              static_cast<int>(coded.size()), 32);
      ASSERT_GT(size, 0);
      const std::string bytes(coded.begin(), coded.begin() + size);
      std::vector<Value> decoded(values.size());
      ASSERT_TRUE(DecodeRice<Value>(bytes, 32, absl::MakeSpan(decoded)));
      EXPECT_EQ(decoded, values) << "kind " << kind << ", count " << count;
      EXPECT_GE(MostRiceValues(bytes.size(), sizeof(Value), 32), count);
    }
  }
}

TEST(Rice, DecodesWhatCfitsioCodes) {
  ExpectRoundTrips<int32_t, int>(fits_rcomp);
  ExpectRoundTrips<int16_t, short>(fits_rcomp_short);
  ExpectRoundTrips<uint8_t, signed char>(fits_rcomp_byte);
}

TEST(Rice, RefusesCodesThatEndTooEarly) {
  std::mt19937 random(7);
  std::vector<int32_t> values = Values<int32_t>(2, 1000, random), decoded(1000);
  std::vector<unsigned char> coded(10000);
  const int size = fits_rcomp(values.data(), 1000, coded.data(), 10000, 32);
  for (int cut = 0; cut + 8 < size; ++cut) {
    const std::string bytes(coded.begin(), coded.begin() + cut);
    EXPECT_FALSE(DecodeRice<int32_t>(bytes, 32, absl::MakeSpan(decoded))) << cut << " of " << size;
  }
}

TEST(Rice, DecodesNothingOnceAStopIsRequested) {
  std::vector<uint8_t> decoded(1000, 1);
  const std::string coded(1 + decoded.size(), '\0');
  std::stop_source stop;
  stop.request_stop();
  EXPECT_FALSE(DecodeRice<uint8_t>(coded, 1, absl::MakeSpan(decoded), stop.get_token()));
  EXPECT_EQ(decoded, std::vector<uint8_t>(1000, 1));
  EXPECT_TRUE(DecodeRice<uint8_t>(coded, 1, absl::MakeSpan(decoded)));
  EXPECT_EQ(decoded, std::vector<uint8_t>(1000, 0));
}

TEST(Rice, SurvivesAnyBytes) {
  const unsigned seed = 99;
  SCOPED_TRACE(seed);
  std::mt19937 random(seed);
  std::vector<int32_t> ints(300);
  std::vector<int16_t> shorts(300);
  std::vector<uint8_t> bytes(300);
  for (int k = 0; k < 2000; ++k) {
    std::string coded(random() % 200, '\0');
    const int zeros = static_cast<int>(random() % 3);
    for (char& c : coded)
      c = random() % 3 < static_cast<unsigned>(zeros) ? '\0' : static_cast<char>(random());
    DecodeRice<int32_t>(coded, 32, absl::MakeSpan(ints));
    DecodeRice<int16_t>(coded, 16, absl::MakeSpan(shorts));
    DecodeRice<uint8_t>(coded, 1, absl::MakeSpan(bytes));
  }
}

}  // namespace
}  // namespace spexd
