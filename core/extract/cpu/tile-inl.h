// Kernels on 8 x 8 column-major tiles, for the target being compiled (included once for each; see Highway's
// foreach_target).
#if defined(SPEXD_CORE_EXTRACT_CPU_TILE_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef SPEXD_CORE_EXTRACT_CPU_TILE_INL_H_
#undef SPEXD_CORE_EXTRACT_CPU_TILE_INL_H_
#else
#define SPEXD_CORE_EXTRACT_CPU_TILE_INL_H_
#endif

#include "core/extract/cpu/tiled_band.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace spexd::cpu {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using TileTag = hn::CappedTag<double, kTile>;

// Vectors to a tile's column, and columns whose sums fit the registers beside kRun tiles.
inline constexpr int kLanes = static_cast<int>(hn::MaxLanes(TileTag()));
inline constexpr int kVectors = kTile / kLanes;
inline constexpr int kRun = kVectors == 1 ? kTileRun : 1;
inline constexpr int kColumns = kVectors == 1 ? kTile : kVectors == 2 ? 4 : 2;

// c[r] -= sum over t of a[t * kRuns + r] b[t]^T for kRuns tiles at once.
template <int kRuns>
HWY_INLINE void SubtractProductsRun(const double* const* a, const double* const* b, int count,
                                    double* const* c) {
  const TileTag d;
  using V = hn::Vec<TileTag>;
  constexpr int kRows = kRuns * kVectors;
  for (int column = 0; column < kTile; column += kColumns) {
    V sum[kColumns][kRows];
    for (int q = 0; q < kColumns; ++q) {
      for (int r = 0; r < kRows; ++r) {
        sum[q][r] = hn::Load(d, c[r / kVectors] + (column + q) * kTile + (r % kVectors) * kLanes);
      }
    }
    for (int t = 0; t < count; ++t) {
      const double* const* left = a + t * kRuns;
      const double* right = b[t] + column;
      for (int k = 0; k < kTile; ++k) {
        V row[kRows];
        for (int r = 0; r < kRows; ++r) {
          row[r] = hn::Load(d, left[r / kVectors] + k * kTile + (r % kVectors) * kLanes);
        }
        for (int q = 0; q < kColumns; ++q) {
          const V factor = hn::Set(d, right[k * kTile + q]);
          for (int r = 0; r < kRows; ++r) sum[q][r] = hn::NegMulAdd(row[r], factor, sum[q][r]);
        }
      }
    }
    for (int q = 0; q < kColumns; ++q) {
      for (int r = 0; r < kRows; ++r) {
        hn::Store(sum[q][r], d, c[r / kVectors] + (column + q) * kTile + (r % kVectors) * kLanes);
      }
    }
  }
}

// Any number of tiles up to kRun; a as above with `runs` for kRuns.
HWY_INLINE void SubtractProducts(int runs, const double* const* a, const double* const* b, int count,
                                 double* const* c) {
  if constexpr (kRun == 1) {
    SubtractProductsRun<1>(a, b, count, c);
  } else {
    switch (runs) {
      case 1:
        return SubtractProductsRun<1>(a, b, count, c);
      case 2:
        return SubtractProductsRun<2>(a, b, count, c);
      default:
        return SubtractProductsRun<kRun>(a, b, count, c);
    }
  }
}

// x L^T = x in place, for a tile x and the lower triangular tile l with reciprocal diagonal `inverse`.
HWY_INLINE void SolveRightTransposed(const double* l, const double* inverse, double* x) {
  const TileTag d;
  for (int v = 0; v < kVectors; ++v) {
    hn::Vec<TileTag> column[kTile];
    for (int c = 0; c < kTile; ++c) column[c] = hn::Load(d, x + c * kTile + v * kLanes);
    for (int c = 0; c < kTile; ++c) {
      column[c] = hn::Mul(column[c], hn::Set(d, inverse[c]));
      for (int k = c + 1; k < kTile; ++k) {
        column[k] = hn::NegMulAdd(column[c], hn::Set(d, l[c * kTile + k]), column[k]);
      }
    }
    for (int c = 0; c < kTile; ++c) hn::Store(column[c], d, x + c * kTile + v * kLanes);
  }
}

// y L = x for a tile x; y may be x.
HWY_INLINE void SolveRight(const double* l, const double* inverse, const double* x, double* y) {
  const TileTag d;
  for (int v = 0; v < kVectors; ++v) {
    hn::Vec<TileTag> column[kTile];
    for (int c = 0; c < kTile; ++c) column[c] = hn::Load(d, x + c * kTile + v * kLanes);
    for (int c = kTile - 1; c >= 0; --c) {
      column[c] = hn::Mul(column[c], hn::Set(d, inverse[c]));
      for (int k = 0; k < c; ++k) {
        column[k] = hn::NegMulAdd(column[c], hn::Set(d, l[k * kTile + c]), column[k]);
      }
    }
    for (int c = 0; c < kTile; ++c) hn::Store(column[c], d, y + c * kTile + v * kLanes);
  }
}

HWY_INLINE void Transpose(const double* from, double* to) {
  for (int c = 0; c < kTile; ++c) {
    for (int r = 0; r < kTile; ++r) to[r * kTile + c] = from[c * kTile + r];
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace spexd::cpu
HWY_AFTER_NAMESPACE();

#endif  // include guard by target
