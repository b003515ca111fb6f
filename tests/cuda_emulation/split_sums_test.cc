#include "cuda/kernels/split_sums.cuh"

#include <cmath>
#include <cstdint>
#include <random>
#include <vector>

#include "gtest/gtest.h"

namespace spexd::cuda {
namespace {

constexpr int kPairs = 20, kTiles = 2 * kPairs + 1;  // whose products cancel, and one with what is left
constexpr double kSplitBy = 0x1p32, kSplitOtherBy = 0x1.8p41;

// Of a b^T summed over tiles: split by 8 rows, twice that by 16, and as it is; a tile each.
__global__ void Sum(const double* a, const double* b, double* sums) {
  const LanePlaces at;
  double exact[2] = {0, 0}, small[2] = {0, 0}, exact16[4] = {}, small16[4] = {}, plain[2] = {0, 0};
  for (int t = 0; t < kTiles; ++t) {
    double own_a[2], own_b[2];
    at.Load(a + t * kTileSize, own_a);
    at.Load(b + t * kTileSize, own_b);
    const double twice[2] = {2 * own_a[0], 2 * own_a[1]};
    MultiplyAddSplit8(own_a, kSplitBy, own_b, kSplitOtherBy, exact, small);
    MultiplyAddSplit16(own_a, twice, kSplitBy, own_b, kSplitOtherBy, exact16, small16);
    MultiplyAdd8(own_a, own_b, plain);
  }
  at.Store(exact[0] + small[0], exact[1] + small[1], sums);
  at.Store(exact16[2] + small16[2], exact16[3] + small16[3], sums + kTileSize);
  at.Store(plain[0], plain[1], sums + 2 * kTileSize);
}

TEST(SplitSums, KeepWhatIsLeftWhenLargeTermsCancel) {
  std::mt19937_64 random(1);
  std::uniform_real_distribution<double> unit(-1, 1);
  std::vector<double> a(kTiles * kTileSize), b(a.size()), sums(3 * kTileSize);
  for (int i = 0; i < kTileSize; ++i) {
    for (int t = 0; t < kPairs; ++t) {
      const size_t first = t * kTileSize + i, second = first + kPairs * kTileSize;
      a[first] = a[second] = unit(random);
      b[first] = 3e4 * unit(random);
      b[second] = -b[first];
    }
    a[(kTiles - 1) * kTileSize + i] = unit(random);
    b[(kTiles - 1) * kTileSize + i] = unit(random);
  }
  ASSERT_EQ(Launch(Sum, dim3(1), kWarp, 0, nullptr, a.data(), b.data(), sums.data()), cudaSuccess);

  const double *a_left = a.data() + (kTiles - 1) * kTileSize, *b_left = b.data() + (kTiles - 1) * kTileSize;
  double split = 0, split16 = 0, plain = 0;
  for (int r = 0; r < kTile; ++r) {
    for (int c = 0; c < kTile; ++c) {
      long double left = 0;
      for (int k = 0; k < kTile; ++k)
        left += static_cast<long double>(a_left[TileIndex(r, k)]) * b_left[TileIndex(c, k)];
      const double expected = static_cast<double>(left);
      const int at = TileIndex(r, c);
      split = std::fmax(split, std::abs(sums[at] - expected));
      split16 = std::fmax(split16, std::abs(sums[kTileSize + at] - 2 * expected));
      plain = std::fmax(plain, std::abs(sums[2 * kTileSize + at] - expected));
    }
  }
  EXPECT_LT(split, 1e-15);
  EXPECT_LT(split16, 2e-15);
  EXPECT_GT(plain, 1e-12);  // the case is one that needs it
}

}  // namespace
}  // namespace spexd::cuda
