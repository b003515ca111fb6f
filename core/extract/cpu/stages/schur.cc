#include "core/extract/cpu/stages/schur.h"

#include <algorithm>
#include <cmath>

#include "core/extract/band_rule.h"
#include "core/model/tolerances.h"

#ifndef SPEXD_CORE_EXTRACT_CPU_SCHUR_TASK_
#define SPEXD_CORE_EXTRACT_CPU_SCHUR_TASK_
namespace spexd::cpu {

struct SchurTask {
  const BandFactor* factor;
  const Coupling* coupling;
  int size;
  double tail;
  const double *scale, *inverse_threshold;
  GrowingRows* columns;
  const int* length;  // [tile]: length of its columns; two more elements behind the last tile
  GrowingRows* products;
};

}  // namespace spexd::cpu
#endif  // SPEXD_CORE_EXTRACT_CPU_SCHUR_TASK_

// The order matters: code after the first include is compiled once for each target.
// clang-format off
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "core/extract/cpu/stages/schur.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
// clang-format on

HWY_BEFORE_NAMESPACE();
namespace spexd::cpu {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using Tag = hn::ScalableTag<double>;
using V = hn::Vec<Tag>;

inline constexpr int kLanes = static_cast<int>(hn::MaxLanes(Tag()));
inline constexpr int kVectors = 4;  // vectors of a tile, whose dependent operations hide each other's latency
static_assert(kLanes * kVectors <= kTileColumns);

int TileColumns() { return kLanes * kVectors; }

// Whether every lane is at most `limit` times its scale.
HWY_INLINE bool IsNegligible(const V* value, const V* scale, double limit) {
  const Tag d;
  auto significant = hn::Gt(hn::Abs(value[0]), hn::Mul(scale[0], hn::Set(d, limit)));
  for (int v = 1; v < kVectors; ++v) {
    significant = hn::Or(significant, hn::Gt(hn::Abs(value[v]), hn::Mul(scale[v], hn::Set(d, limit))));
  }
  return hn::AllFalse(d, significant);
}

// Computes columns c .. c + TileColumns() - 1 of X, and returns their length.
int ComputeTile(const SchurTask& task, int c) {
  const Tag d;
  const BandFactor& factor = *task.factor;
  const int reach = task.coupling->reach, size = factor.size();
  const int64_t stride = factor.stride();
  V scale[kVectors], sum[kVectors];
  for (int v = 0; v < kVectors; ++v) scale[v] = hn::LoadU(d, task.scale + c + v * kLanes);
  int negligible = 0, t = 0;
  for (int row = c - reach; row < size; ++row, ++t) {
    double* out = task.columns->Row(t) + c;
    double* const* rows = task.columns->rows();
    const int width = std::min(factor.TileWidth(row), t);
    for (int v = 0; v < kVectors; ++v) {
      sum[v] = t <= 2 * reach ? hn::LoadU(d, task.coupling->Row(t) + c + v * kLanes) : hn::Zero(d);
    }
    const double* lower = factor.inverse() + row;
    for (int k = width; k > 0; --k) {
      const double* x = rows[t - k] + c;
      for (int v = 0; v < kVectors; ++v) {
        sum[v] = hn::NegMulAdd(hn::LoadU(d, lower + k * stride + v * kLanes), hn::LoadU(d, x + v * kLanes),
                               sum[v]);
      }
    }
    for (int v = 0; v < kVectors; ++v) {
      sum[v] = hn::Mul(sum[v], hn::LoadU(d, lower + v * kLanes));
      hn::StoreU(sum[v], d, out + v * kLanes);
    }
    negligible = IsNegligible(sum, scale, task.tail) ? negligible + 1 : 0;
    if (t >= 2 * reach && negligible >= std::max(width, 1)) return t + 1;
  }
  return t;
}

// Computes squares[t]: the largest sum, over columns c .., of a column's squares from row t on relative to
// its threshold, for t < length.
void SumSquares(const SchurTask& task, int c, int length, double* squares) {
  const Tag d;
  V scale[kVectors], sum[kVectors];
  for (int v = 0; v < kVectors; ++v) {
    scale[v] = hn::LoadU(d, task.inverse_threshold + c + v * kLanes);
    sum[v] = hn::Zero(d);
  }
  for (int t = length - 1; t >= 0; --t) {
    const double* x = task.columns->rows()[t] + c;
    auto most = hn::Zero(d);
    for (int v = 0; v < kVectors; ++v) {
      const auto value = hn::LoadU(d, x + v * kLanes);
      sum[v] = hn::MulAdd(value, value, sum[v]);
      most = hn::Max(most, hn::Mul(sum[v], scale[v]));
    }
    squares[t] = hn::GetLane(hn::MaxOfLanes(d, most));
  }
}

// Adds rows [begin, end) to the products of columns c .. with the columns k, k + 1 .. further on.
template <int kCount>
HWY_INLINE void AddProducts(double* const* rows, int c, int k, int begin, int end, V (*sums)[kVectors]) {
  const Tag d;
  V sum[kCount][kVectors];
  for (int q = 0; q < kCount; ++q) std::copy_n(sums[q], kVectors, sum[q]);
  for (int t = begin; t < end; ++t) {
    V a[kVectors];
    for (int v = 0; v < kVectors; ++v) a[v] = hn::LoadU(d, rows[t] + c + v * kLanes);
    for (int q = 0; q < kCount; ++q) {
      const double* b = rows[t - k - q] + c + k + q;
      for (int v = 0; v < kVectors; ++v) {
        sum[q][v] = hn::MulAdd(a[v], hn::LoadU(d, b + v * kLanes), sum[q][v]);
      }
    }
  }
  for (int q = 0; q < kCount; ++q) std::copy_n(sum[q], kVectors, sums[q]);
}

// Computes products of columns c .. with the columns k further on, for k <= last.
void MultiplyTile(const SchurTask& task, int c, int last) {
  constexpr int kCount = kLanes == 8 ? 4 : 2;  // diagonals at a time; their sums fit in registers
  const Tag d;
  double* const* rows = task.columns->rows();
  for (int k = 0; k <= last; k += kCount) {
    V sums[kCount][kVectors];
    int end[kCount], first = k + kCount - 1, common = task.length[c / TileColumns()];
    for (int q = 0; q < kCount; ++q) {
      const int other = std::min(c + k + q, task.size - 1) / TileColumns();
      end[q] = std::min(task.length[c / TileColumns()],
                        k + q + std::max(task.length[other], task.length[other + 1]));
      if (k + q > last) end[q] = 0;
      common = std::min(common, end[q]);
      for (auto& sum : sums[q]) sum = hn::Zero(d);
    }
    common = std::max(common, first);
    AddProducts<kCount>(rows, c, k, first, common, sums);
    for (int q = 0; q < kCount && k + q <= last; ++q) {
      AddProducts<1>(rows, c, k + q, k + q, std::min(first, end[q]), sums + q);
      AddProducts<1>(rows, c, k + q, common, end[q], sums + q);
      double* out = task.products->Row(k + q) + c;
      for (int v = 0; v < kVectors; ++v) hn::StoreU(sums[q][v], d, out + v * kLanes);
    }
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace spexd::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace spexd::cpu {

HWY_EXPORT(TileColumns);
HWY_EXPORT(ComputeTile);
HWY_EXPORT(SumSquares);
HWY_EXPORT(MultiplyTile);

namespace {

// Entry (j + k, j) of base - X^T X, from the rows of both for k. A null row is 0.
double Difference(const double* base, const double* product, int j) {
  return (base != nullptr ? base[j] : 0.0) - (product != nullptr ? product[j] : 0.0);
}

}  // namespace

void SchurUpdate::SetScales(int size, const BandLimits& limits) {
  size_ = size;
  side_ = HWY_DYNAMIC_DISPATCH(TileColumns)();
  scale_.assign(size + 2 * kTileColumns, 0.0);
  inverse_threshold_.assign(size + 2 * kTileColumns, 0.0);
  for (int j = 0; j < size; ++j) {
    scale_[j] = std::sqrt(limits.diagonal[j]);
    inverse_threshold_[j] = 1 / limits.threshold[j];
  }
}

bool SchurUpdate::Compute(const BandFactor& factor, const Coupling& coupling, const BandLimits& limits,
                          const std::stop_token& stop) {
  SetScales(factor.size(), limits);
  // The product of a tile with the last one reads one tile beyond it.
  columns_.Reset(RowStride(size_ + 2 * kTileColumns));
  products_.Reset(RowStride(size_ + 2 * kTileColumns));
  return ComputeColumns(factor, coupling, limits.tail, stop) && ComputeProducts(limits, stop);
}

SchurTask SchurUpdate::Task(const BandFactor* factor, const Coupling* coupling, double tail) {
  return {factor,    coupling,       size_,     tail, scale_.data(), inverse_threshold_.data(),
          &columns_, length_.data(), &products_};
}

bool SchurUpdate::ComputeColumns(const BandFactor& factor, const Coupling& coupling, double tail,
                                 const std::stop_token& stop) {
  const int side = side_, tiles = (size_ + side - 1) / side;
  length_.assign(tiles + 2, 0);
  const SchurTask task = Task(&factor, &coupling, tail);
  for (int tile = 0; tile < tiles; ++tile) {
    if (stop.stop_requested()) return false;
    length_[tile] = HWY_DYNAMIC_DISPATCH(ComputeTile)(task, tile * side);
  }
  // Products read two neighbouring tiles up to the end of the longer one.
  for (int tile = 0; tile < tiles; ++tile) {
    const int end = std::max(length_[tile + 1], tile > 0 ? length_[tile - 1] : 0);
    for (int t = length_[tile]; t < end; ++t) std::fill_n(columns_.Row(t) + tile * side, side, 0.0);
  }
  return true;
}

bool SchurUpdate::ComputeProducts(const BandLimits& limits, const std::stop_token& stop) {
  const int side = side_, tiles = (size_ + side - 1) / side;
  const SchurTask task = Task(nullptr, nullptr, limits.tail);
  extent_.assign(tiles, -1);
  squares_.resize(*std::max_element(length_.begin(), length_.end()) + 1);
  largest_.assign(tiles + 2, 0.0);
  for (int tile = 0; tile < tiles; ++tile) {
    HWY_DYNAMIC_DISPATCH(SumSquares)(task, tile * side, length_[tile], squares_.data());
    largest_[tile] = squares_[0];
  }
  for (int tile = 0; tile < tiles; ++tile) {
    if (stop.stop_requested()) return false;
    HWY_DYNAMIC_DISPATCH(SumSquares)(task, tile * side, length_[tile], squares_.data());
    // A product of columns k apart is at most the remaining squares of one from row k on, times those of the
    // other. (A small product does not mean that those further out are small: across a hole, products decay
    // and grow again.)
    int last = std::min(length_[tile], size_ - tile * side) - 1;
    const auto others = largest_.begin() + tile;
    const double most = *std::max_element(others, others + std::min(last / side + 2, tiles - tile));
    while (last > limits.usual && squares_[last] * most < 1) --last;
    HWY_DYNAMIC_DISPATCH(MultiplyTile)(task, tile * side, last);
    extent_[tile] = last;
  }
  return true;
}

void SchurUpdate::ChooseWidths(const BandView& base, const BandLimits& limits, SymmetricBand* out) {
  out->width.assign(size_, limits.usual);
  lumped_.assign(size_, 0.0);
  for (int from = 0, tile = 0; from < size_; from += side_, ++tile) {
    for (int k = std::max(extent_[tile], base.most); k > limits.usual; --k) {
      const int end = std::min(from + side_, size_ - k);
      const double *own = k <= base.most ? base.Diagonal(k) : nullptr, *product = Product(k, tile);
      for (int j = from; j < end; ++j) {
        const double entry = Difference(own, product, j);
        if (!IsKept(entry, limits.threshold[j], limits.threshold[j + k])) continue;
        out->width[j] = std::max(out->width[j], std::min(k, limits.most));
        if (k <= limits.most) continue;
        lumped_[j] += std::abs(entry);
        lumped_[j + k] += std::abs(entry);
      }
    }
  }
  int before = 0;
  for (int j = 0; j < size_; ++j) {
    before = out->width[j] = ClosedBandWidth(out->width[j], before, size_ - 1 - j);
  }
}

void SchurUpdate::Subtract(const BandView& base, const BandLimits& limits, SymmetricBand* out) {
  ChooseWidths(base, limits, out);
  out->Shape();
  for (int from = 0, tile = 0; from < size_; from += side_, ++tile) {
    const int end = std::min(from + side_, size_);
    const int* width = out->width.data();
    for (int k = 0; k <= out->most(); ++k) {
      const double *own = k <= base.most ? base.Diagonal(k) : nullptr, *product = Product(k, tile);
      double* to = out->Diagonal(k);
      for (int j = from; j < end; ++j) to[j] = k <= width[j] ? Difference(own, product, j) : 0.0;
    }
  }
  for (int j = 0; j < size_; ++j) out->Diagonal(0)[j] += lumped_[j];
}

void SchurUpdate::Copy(const BandView& base, const BandLimits& limits, SymmetricBand* out) {
  SetScales(base.size, limits);
  extent_.assign(size_ / side_ + 1, -1);
  Subtract(base, limits, out);
}

}  // namespace spexd::cpu
#endif  // HWY_ONCE
