#include "core/extract/cpu/normal.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "core/extract/formulas.h"

#ifndef SPEXD_CORE_EXTRACT_CPU_NORMAL_WEIGHTED_
#define SPEXD_CORE_EXTRACT_CPU_NORMAL_WEIGHTED_
namespace spexd::cpu {
// A spot times ivar: `rows` rows of `columns` values, `stride` apart.
struct Weighted {
  const double* values;
  int stride, rows, columns;
};
}  // namespace spexd::cpu
#endif  // SPEXD_CORE_EXTRACT_CPU_NORMAL_WEIGHTED_

// The order matters: what follows the first is compiled once for each target.
// clang-format off
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "core/extract/cpu/normal.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
// clang-format on

HWY_BEFORE_NAMESPACE();
namespace spexd::cpu {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// hn::MaskedLoad, which on SSE4 wants aligned addresses and reads the lanes left out.
template <class D, class M>
HWY_INLINE hn::Vec<D> LoadFirst(M mask, D d, const double* from, int count) {
#if HWY_TARGET == HWY_SSE4
  HWY_ALIGN double lanes[HWY_MAX_BYTES / sizeof(double)] = {};
  for (int k = 0; k < static_cast<int>(hn::Lanes(d)) && k < count; ++k) lanes[k] = from[k];
  return hn::Load(d, lanes);
#else
  return hn::MaskedLoad(mask, d, from);
#endif
}

// weighted[row * stride + column] = spot * ivar; the rest of a row is already zero. Adds up spot * ivar *
// pixel and spot * ivar.
void WeighSpot(const double* spot, int rows, int columns, const double* ivar, const double* pixels,
               int64_t image_stride, double* weighted, int stride, double* data, double* weight) {
  const hn::ScalableTag<double> d;
  const int lanes = static_cast<int>(hn::Lanes(d));
  auto sum_data = hn::Zero(d), sum_weight = hn::Zero(d);
  for (int row = 0; row < rows; ++row) {
    for (int column = 0; column < columns; column += lanes) {
      const auto mask = hn::FirstN(d, static_cast<size_t>(columns - column));
      const int64_t at = row * image_stride + column;
      const int left = columns - column;
      const auto t = hn::Mul(LoadFirst(mask, d, spot + row * columns + column, left),
                             LoadFirst(mask, d, ivar + at, left));
      sum_weight = hn::Add(sum_weight, t);
      sum_data = hn::MulAdd(t, LoadFirst(mask, d, pixels + at, left), sum_data);
      hn::StoreU(t, d, weighted + row * stride + column);
    }
  }
  *data = hn::GetLane(hn::SumOfLanes(d, sum_data));
  *weight = hn::GetLane(hn::SumOfLanes(d, sum_weight));
}

// sum of weighted(row, u) * other(row, u) over `rows` rows and `width` columns, kVectors vectors a row.
template <int kVectors>
HWY_INLINE double Dot(const double* weighted, int stride, const double* other, int other_stride, int rows,
                      int width) {
  const hn::ScalableTag<double> d;
  const int lanes = static_cast<int>(hn::Lanes(d));
  const auto last = hn::FirstN(d, static_cast<size_t>(width - (kVectors - 1) * lanes));
  auto even = hn::Zero(d), odd = hn::Zero(d), rest = hn::Zero(d);
  for (int row = 0; row < rows; ++row) {
    for (int v = 0; v + 1 < kVectors; ++v) {
      auto& sum = v % 2 == 0 ? even : odd;
      sum = hn::MulAdd(hn::LoadU(d, weighted + v * lanes), hn::LoadU(d, other + v * lanes), sum);
    }
    rest = hn::MulAdd(LoadFirst(last, d, weighted + (kVectors - 1) * lanes, width - (kVectors - 1) * lanes),
                      hn::LoadU(d, other + (kVectors - 1) * lanes), rest);
    weighted += stride;
    other += other_stride;
  }
  return hn::GetLane(hn::SumOfLanes(d, hn::Add(hn::Add(even, odd), rest)));
}

double DotAny(const double* weighted, int stride, const double* other, int other_stride, int rows,
              int width) {
  const int lanes = static_cast<int>(hn::Lanes(hn::ScalableTag<double>()));
  switch ((width + lanes - 1) / lanes) {
    case 1:
      return Dot<1>(weighted, stride, other, other_stride, rows, width);
    case 2:
      return Dot<2>(weighted, stride, other, other_stride, rows, width);
    case 3:
      return Dot<3>(weighted, stride, other, other_stride, rows, width);
    case 4:
      return Dot<4>(weighted, stride, other, other_stride, rows, width);
    case 5:
      return Dot<5>(weighted, stride, other, other_stride, rows, width);
    default: {
      // Wide spots in stretches of one vector.
      double sum = 0;
      for (int column = 0; column < width; column += lanes) {
        sum += Dot<1>(weighted + column, stride, other + column, other_stride, rows,
                      std::min(lanes, width - column));
      }
      return sum;
    }
  }
}

// The product of a weighted spot with another one; dx, dy: the other's first pixel less its own.
double DotSpots(const Weighted& t, const double* other, int dx, int dy) {
  const int width = t.columns - std::abs(dx), rows = t.rows - std::abs(dy);
  if (width <= 0 || rows <= 0) return 0;
  return DotAny(t.values + std::max(dy, 0) * t.stride + std::max(dx, 0), t.stride,
                other + std::max(-dy, 0) * t.columns + std::max(-dx, 0), t.columns, rows, width);
}

}  // namespace HWY_NAMESPACE
}  // namespace spexd::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace spexd::cpu {

HWY_EXPORT(WeighSpot);
HWY_EXPORT(DotSpots);

namespace {
// Bins between two looks at the stop token.
constexpr int kStretch = 64;
}  // namespace

int64_t NormalEquations::Bytes(int fibres, int bins, int reach, int fibre_reach) {
  const int64_t diagonals = (reach + 1) + int64_t{fibre_reach} * (2 * reach + 1);
  return int64_t{sizeof(double)} * fibres *
         (diagonals * RowStride(bins + 2 * (reach + 8) + 2 * kTileColumns) + 3 * int64_t{bins});
}

void NormalEquations::ClearPads(int fibres) {
  double* row = values_.data();
  for (int64_t k = 0; k < fibres * diagonals_; ++k, row += stride_) {
    std::fill_n(row, front_, 0.0);
    std::fill(row + front_ + bins_, row + stride_, 0.0);
  }
  std::fill_n(row, front_ + kTileColumns, 0.0);
}

bool NormalEquations::Compute(const BundlePlan& plan, const Spots& spots, const BundleImage& image,
                              const std::stop_token& stop) {
  const int fibres = plan.fibres.count;
  bins_ = plan.bins;
  reach_ = plan.reach;
  front_ = (reach_ + 7) / 8 * 8;
  stride_ = RowStride(front_ + bins_ + kTileColumns);
  diagonals_ = (reach_ + 1) + int64_t{plan.fibre_reach} * (2 * reach_ + 1);
  values_.Reserve(fibres * diagonals_ * stride_ + front_ + kTileColumns);
  ClearPads(fibres);
  weight_.Assign({fibres, bins_});
  data_.Assign({fibres, bins_});
  // A spot times ivar, with zeros behind each row.
  const int stride = (spots.columns() + 7) / 8 * 8 + 8;
  std::fill_n(scratch_.Reserve(spots.rows() * stride), spots.rows() * stride, 0.0);
  for (int i = 0; i < fibres; ++i) {
    for (int j = 0; j < bins_; ++j) {
      if (j % kStretch == 0 && stop.stop_requested()) return false;
      const bool touches = image.Touches(spots.first_row(i, j), spots.first_column(i, j));
      if (touches) {
        const int64_t at = image.Offset(spots.first_row(i, j), spots.first_column(i, j));
        HWY_DYNAMIC_DISPATCH(WeighSpot)
        (spots.Spot(j, i), spots.rows(), spots.columns(), image.ivar() + at, image.pixels() + at,
         image.stride(), scratch_.data(), stride, &data_(i, j), &weight_(i, j));
      }
      const Weighted weighted = {scratch_.data(), stride, spots.rows(), spots.columns()};
      for (int apart = 0; apart <= plan.fibre_reach; ++apart) {
        double* out = MutableDiagonals(i, apart) + j;
        for (int k = apart == 0 ? 0 : -reach_; k <= reach_; ++k, out += stride_) {
          const int other = j + k;
          const bool inside = touches && i + apart < fibres && other >= 0 && other < bins_;
          *out = inside ? HWY_DYNAMIC_DISPATCH(DotSpots)(
                              weighted, spots.Spot(other, i + apart),
                              spots.first_column(i + apart, other) - spots.first_column(i, j),
                              spots.first_row(i + apart, other) - spots.first_row(i, j))
                        : 0.0;
        }
      }
    }
  }
  return true;
}

void NormalEquations::AddPrior(double regularize, bool fine_grid) {
  const double floor = kMinWeight * *std::max_element(weight_.flat().begin(), weight_.flat().end());
  const int fibres = static_cast<int>(weight_.shape(0));
  weak_.Reshape(weight_.shape());
  for (int i = 0; i < fibres; ++i) {
    double* diagonal = MutableDiagonals(i, 0);
    for (int j = 0; j < bins_; ++j) {
      weak_(i, j) = IsWeak(weight_(i, j), floor);
      diagonal[j] += Prior(weight_(i, j), floor, regularize, fine_grid, diagonal[j]);
    }
  }
}

}  // namespace spexd::cpu
#endif  // HWY_ONCE
