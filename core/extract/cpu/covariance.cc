#include "core/extract/cpu/covariance.h"

#include <algorithm>
#include <vector>

// The order matters: what follows the first is compiled once for each target.
// clang-format off
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "core/extract/cpu/covariance.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "core/extract/cpu/tile-inl.h"
// clang-format on

HWY_BEFORE_NAMESPACE();
namespace spexd::cpu {
namespace HWY_NAMESPACE {

// One step of the recurrence: tile column `column` of C, down to `down` tiles below the diagonal, into the
// ring. Tile (column + p, column + q) of C lives at window + (slot[q] * ring + slot[p]) * kTileSize, both
// triangles.
void InverseColumn(const TiledBand& factor, int column, int down, int ring, const int* slot, double* window,
                   double* scaled, const double** left, const double** right) {
  const int below = std::min(factor.band_tiles(), factor.tiles() - 1 - column);
  const double* l = factor.Tile(column, 0);
  double inverse[kTile];
  for (int c = 0; c < kTile; ++c) inverse[c] = 1 / l[c * kTile + c];
  HWY_ALIGN double tile[kTileSize];

  // Y_k = L_kj L_jj^-1, kept transposed: the kernel broadcasts its right factor by rows.
  for (int k = 1; k <= below; ++k) {
    SolveRight(l, inverse, factor.Tile(column, k), tile);
    Transpose(tile, scaled + (k - 1) * kTileSize);
  }
  const auto at = [=](int p, int q) { return window + (slot[q] * ring + slot[p]) * int64_t{kTileSize}; };
  for (int k = 0; k < below; ++k) right[k] = scaled + k * kTileSize;

  // C_ij = -sum_k C_ik Y_k for i > j, then the diagonal tile, C_jj = L_jj^-T L_jj^-1 - sum_k C_jk Y_k.
  double* out[kTileRun];
  for (int i = 1; i <= down; i += kRun) {
    const int runs = std::min(kRun, down + 1 - i);
    for (int r = 0; r < runs; ++r) {
      out[r] = at(i + r, 0);
      std::fill_n(out[r], kTileSize, 0.0);
    }
    for (int k = 0; k < below; ++k) {
      for (int r = 0; r < runs; ++r) left[k * runs + r] = at(i + r, 1 + k);
    }
    SubtractProducts(runs, left, right, below, out);
    for (int r = 0; r < runs; ++r) Transpose(out[r], at(0, i + r));
  }
  double* last = at(0, 0);
  out[0] = last;
  for (int c = 0; c < kTile; ++c) {
    for (int r = 0; r < kTile; ++r) tile[c * kTile + r] = r == c ? 1.0 : 0.0;
  }
  SolveRight(l, inverse, tile, tile);  // L^-1
  Transpose(tile, last);               // L^-T
  SolveRight(l, inverse, last, last);  // L^-T L^-1
  for (int k = 0; k < below; ++k) left[k] = at(0, 1 + k);
  SubtractProductsRun<1>(left, right, below, out);
  // Rounding leaves the tile a little unsymmetric, and the recurrence would amplify that from column to
  // column.
  for (int c = 0; c < kTile; ++c) {
    for (int r = 0; r < c; ++r) {
      last[c * kTile + r] = last[r * kTile + c] = 0.5 * (last[c * kTile + r] + last[r * kTile + c]);
    }
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace spexd::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace spexd::cpu {

HWY_EXPORT(InverseColumn);

namespace {

// Tiles of C below the diagonal one that each tile column is computed with.
std::vector<int> TilesDown(const TiledBand& factor, int fibres, const std::vector<int>& widths) {
  const int tiles = factor.tiles();
  std::vector<int> down(tiles);
  for (int tile = 0; tile < tiles; ++tile) {
    down[tile] = factor.band_tiles();
    const int64_t end = std::min(int64_t{tile + 1} * kTile, factor.size());
    for (int64_t a = int64_t{tile} * kTile; a < end; ++a) {
      const int64_t farthest = a + int64_t{fibres} * widths[a / fibres];
      down[tile] = std::max(down[tile], static_cast<int>(farthest / kTile) - tile);
    }
    // A column reads its neighbour's entries in the rows that it computes.
    if (tile > 0) down[tile] = std::max(down[tile], down[tile - 1] - 1);
    down[tile] = std::min(down[tile], tiles - 1 - tile);
  }
  return down;
}

}  // namespace

std::vector<int> CovarianceWidths(std::vector<int> wanted) {
  const int bins = static_cast<int>(wanted.size());
  for (int j = 0; j < bins; ++j) {
    if (j > 0) wanted[j] = std::max(wanted[j], wanted[j - 1] - 1);
    wanted[j] = std::min(wanted[j], bins - 1 - j);
  }
  return wanted;
}

void CovarianceSolver::Solve(const TiledBand& factor, int fibres, const FibreRange& kept,
                             const std::vector<int>& widths, FibreCovariance* covariance) {
  const int bins = static_cast<int>(widths.size());
  covariance->fibres = kept.count;
  covariance->bins = bins;
  covariance->most = *std::max_element(widths.begin(), widths.end());
  const int64_t stride = covariance->stride();
  const int64_t count = stride * (covariance->most + 1) * kept.count;
  std::fill_n(covariance->values.Reserve(count), count, 0.0);
  for (int i = 0; i < kept.count; ++i) std::fill_n(covariance->Diagonal(i, 0) + bins, stride - bins, 1.0);

  const std::vector<int> down = TilesDown(factor, fibres, widths);
  const int ring = *std::max_element(down.begin(), down.end()) + 1;
  double* window = window_.Reserve(int64_t{ring} * ring * kTileSize);
  double* scaled = scaled_.Reserve(int64_t{factor.band_tiles() + 1} * kTileSize);
  left_.resize(kTileRun * (factor.band_tiles() + 1));
  right_.resize(factor.band_tiles() + 1);
  slot_.resize(ring);

  for (int tile = factor.tiles() - 1; tile >= 0; --tile) {
    for (int p = 0; p < ring; ++p) slot_[p] = (tile + p) % ring;
    HWY_DYNAMIC_DISPATCH(InverseColumn)
    (factor, tile, down[tile], ring, slot_.data(), window, scaled, left_.data(), right_.data());
    const double* column_of_tiles = window + int64_t{slot_[0]} * ring * kTileSize;
    const int64_t end = std::min(int64_t{tile + 1} * kTile, factor.size());
    for (int64_t a = int64_t{tile} * kTile; a < end; ++a) {
      const int fibre = static_cast<int>(a % fibres) - kept.first, j = static_cast<int>(a / fibres);
      if (fibre < 0 || fibre >= kept.count) continue;
      double* out = covariance->Diagonal(fibre, 0) + j;
      for (int k = 0; k <= widths[j]; ++k, out += stride) {
        const int64_t row = a + int64_t{fibres} * k;
        *out = column_of_tiles[slot_[row / kTile - tile] * kTileSize + (a % kTile) * kTile + row % kTile];
      }
    }
  }
}

}  // namespace spexd::cpu
#endif  // HWY_ONCE
