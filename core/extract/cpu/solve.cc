#include "core/extract/cpu/solve.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "core/model/tolerances.h"

// The order matters: what follows the first is compiled once for each target.
// clang-format off
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "core/extract/cpu/solve.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "core/extract/cpu/tile-inl.h"
// clang-format on

HWY_BEFORE_NAMESPACE();
namespace spexd::cpu {
namespace HWY_NAMESPACE {

// Cholesky of one tile in place (lower part; the upper is zeroed) and the reciprocals of its diagonal.
// `least`: per pivot.
void FactorTile(const double* least, double* tile, double* inverse) {
  for (int c = 0; c < kTile; ++c) {
    double* column = tile + c * kTile;
    const double pivot = std::sqrt(std::max(column[c], least[c]));
    inverse[c] = 1 / pivot;
    for (int r = 0; r < c; ++r) column[r] = 0;
    column[c] = pivot;
    for (int r = c + 1; r < kTile; ++r) column[r] *= inverse[c];
    for (int k = c + 1; k < kTile; ++k) {
      for (int r = k; r < kTile; ++r) tile[k * kTile + r] -= column[r] * column[k];
    }
  }
}

// b -= L_tile x.
HWY_INLINE void SubtractTimes(const double* tile, const double* x, double* b) {
  const TileTag d;
  for (int v = 0; v < kVectors; ++v) {
    auto sum = hn::Load(d, b + v * kLanes);
    for (int c = 0; c < kTile; ++c) {
      sum = hn::NegMulAdd(hn::Load(d, tile + c * kTile + v * kLanes), hn::Set(d, x[c]), sum);
    }
    hn::Store(sum, d, b + v * kLanes);
  }
}

void FactorAndForward(TiledBand* matrix, double* b) {
  const int tiles = matrix->tiles(), band = matrix->band_tiles();
  std::vector<const double*> left(kRun * (band + 1)), right(band + 1);
  double* out[kTileRun];
  double least[kTile], inverse[kTile];
  for (int column = 0; column < tiles; ++column) {
    double* diagonal = matrix->Tile(column, 0);
    for (int c = 0; c < kTile; ++c) least[c] = kLeastPivot * diagonal[c * kTile + c];
    const int below = std::min(band, tiles - 1 - column);
    // Left-looking: a tile gathers from the earlier columns whose band reaches it. Of a run of tiles the
    // first is reached by the most columns; the others read zero tiles behind the band.
    for (int down = 0; down <= below; down += kRun) {
      const int runs = std::min(kRun, below + 1 - down);
      for (int r = 0; r < runs; ++r) out[r] = diagonal + (down + r) * kTileSize;
      int count = 0;
      for (int k = std::max(0, column + down - band); k < column; ++k, ++count) {
        right[count] = matrix->Tile(k, column - k);
        for (int r = 0; r < runs; ++r) left[count * runs + r] = matrix->Tile(k, column - k + down + r);
      }
      SubtractProducts(runs, left.data(), right.data(), count, out);
    }
    FactorTile(least, diagonal, inverse);
    double* x = b + int64_t{column} * kTile;
    for (int c = 0; c < kTile; ++c) {
      x[c] *= inverse[c];
      for (int r = c + 1; r < kTile; ++r) x[r] -= diagonal[c * kTile + r] * x[c];
    }
    for (int down = 1; down <= below; ++down) {
      double* tile = diagonal + down * kTileSize;
      SolveRightTransposed(diagonal, inverse, tile);
      SubtractTimes(tile, x, x + down * kTile);
    }
  }
}

void Backward(const TiledBand& factor, double* x) {
  const TileTag d;
  const int tiles = factor.tiles(), band = factor.band_tiles();
  for (int column = tiles - 1; column >= 0; --column) {
    double* at = x + int64_t{column} * kTile;
    const int below = std::min(band, tiles - 1 - column);
    for (int c = 0; c < kTile; ++c) {
      auto sum = hn::Zero(d);
      for (int down = 1; down <= below; ++down) {
        const double* tile = factor.Tile(column, down) + c * kTile;
        for (int v = 0; v < kVectors; ++v) {
          sum = hn::MulAdd(hn::Load(d, tile + v * kLanes), hn::Load(d, at + down * kTile + v * kLanes), sum);
        }
      }
      at[c] -= hn::GetLane(hn::SumOfLanes(d, sum));
    }
    const double* l = factor.Tile(column, 0);
    for (int c = kTile - 1; c >= 0; --c) {
      for (int r = c + 1; r < kTile; ++r) at[c] -= l[c * kTile + r] * at[r];
      at[c] /= l[c * kTile + c];
    }
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace spexd::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace spexd::cpu {

HWY_EXPORT(FactorAndForward);
HWY_EXPORT(Backward);

void CholeskySolve(TiledBand* matrix, double* b) {
  HWY_DYNAMIC_DISPATCH(FactorAndForward)(matrix, b);
  HWY_DYNAMIC_DISPATCH(Backward)(*matrix, b);
}

}  // namespace spexd::cpu
#endif  // HWY_ONCE
