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

// The products of a weighted spot with the spots of `count` fibres of one bin; dx, dy: their first pixels
// less its own.
void DotSpots(const Weighted& t, const double* others, const int32_t* first_column, const int32_t* first_row,
              int64_t step, int count, int column, int row, double* out) {
  for (int k = 0; k < count; ++k) {
    const int dx = first_column[k * step] - column, dy = first_row[k * step] - row;
    const int width = t.columns - std::abs(dx), rows = t.rows - std::abs(dy);
    if (width <= 0 || rows <= 0) {
      out[k] = 0;
      continue;
    }
    const double* other = others + static_cast<int64_t>(k) * t.rows * t.columns;
    out[k] = DotAny(t.values + std::max(dy, 0) * t.stride + std::max(dx, 0), t.stride,
                    other + std::max(-dy, 0) * t.columns + std::max(-dx, 0), t.columns, rows, width);
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace spexd::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace spexd::cpu {

HWY_EXPORT(WeighSpot);
HWY_EXPORT(DotSpots);

int64_t NormalEquations::Bytes(const BundlePlan& plan) {
  return plan.first_column.size() * int64_t{sizeof(double)} *
         ((plan.reach + 1) * (2 * plan.fibre_reach + 1) + 2);
}

void NormalEquations::Compute(const BundlePlan& plan, const Spots& spots, const BundleImage& image) {
  fibres_ = plan.fibres.count;
  const int bins = plan.bins(), side = 2 * plan.fibre_reach + 1;
  pairs_per_spot_ = (plan.reach + 1) * side;
  const int64_t count = static_cast<int64_t>(bins) * fibres_;
  double* weight = weight_.Reserve(count);
  double* data = data_.Reserve(count);
  double* pairs = pairs_.Reserve(count * pairs_per_spot_);

  const int stride = (spots.columns() + 7) / 8 * 8 + 8;
  AlignedBuffer<double> weighted;
  std::fill_n(weighted.Reserve(spots.rows() * stride + 8), spots.rows() * stride + 8, 0.0);

  for (int j = 0; j < bins; ++j) {
    for (int i = 0; i < fibres_; ++i) {
      const int64_t at = static_cast<int64_t>(j) * fibres_ + i;
      double* out = pairs + at * pairs_per_spot_;
      const int row = plan.first_row(i, j), column = plan.first_column(i, j);
      weight[at] = data[at] = 0;
      if (image.Touches(row, column)) {
        const int64_t offset = image.Offset(row, column);
        HWY_DYNAMIC_DISPATCH(WeighSpot)
        (spots.Spot(j, i), spots.rows(), spots.columns(), image.ivar() + offset, image.pixels() + offset,
         image.stride(), weighted.data(), stride, &data[at], &weight[at]);
      }
      if (!(weight[at] > 0)) {  // nothing usable below this spot
        std::fill_n(out, pairs_per_spot_, 0.0);
        continue;
      }
      const Weighted t = {weighted.data(), stride, spots.rows(), spots.columns()};
      for (int dbin = 0; dbin <= plan.reach; ++dbin, out += side) {
        const int other_bin = j + dbin;
        const int first = std::max(dbin == 0 ? i : i - plan.fibre_reach, 0);
        const int end = std::min(i + plan.fibre_reach + 1, fibres_);
        std::fill_n(out, side, 0.0);
        if (other_bin >= bins) continue;
        HWY_DYNAMIC_DISPATCH(DotSpots)
        (t, spots.Spot(other_bin, first), &plan.first_column(first, other_bin),
         &plan.first_row(first, other_bin), bins, end - first, column, row,
         out + (first - i + plan.fibre_reach));
      }
    }
  }
}

void AssembleGroup(const BundlePlan& plan, const NormalEquations& normal, const FibreGroup& group,
                   double regularize, bool fine_grid, GroupSystem* system) {
  const int bins = plan.bins(), fibres = group.solved.count;
  const int fibre_reach = std::min(plan.fibre_reach, fibres - 1), side = 2 * plan.fibre_reach + 1;
  const int64_t n = static_cast<int64_t>(bins) * fibres;
  system->fibres = fibres;
  system->bins = bins;
  TiledBand& matrix = system->matrix;
  matrix.Reset(n, static_cast<int64_t>(plan.reach) * fibres + fibre_reach);
  const int64_t padded = int64_t{matrix.tiles()} * kTile;
  double* flux = system->flux.Reserve(padded);
  std::fill_n(flux, padded, 0.0);
  uint8_t* weak = system->weak.Reserve(n);

  double largest = 0;
  for (int j = 0; j < bins; ++j) {
    for (int i = 0; i < fibres; ++i)
      largest = std::max(largest, normal.flux_weight(j, group.solved.first + i));
  }
  const double floor = kMinWeight * largest;

  for (int j = 0; j < bins; ++j) {
    for (int i = 0; i < fibres; ++i) {
      const int64_t a = static_cast<int64_t>(j) * fibres + i;
      const int fibre = group.solved.first + i;
      const double* pairs = normal.Pairs(j, fibre);
      const int first = std::max(-fibre_reach, -i), last = std::min(fibre_reach, fibres - 1 - i);
      for (int dbin = 0; dbin <= plan.reach && j + dbin < bins; ++dbin) {
        for (int di = dbin == 0 ? 0 : first; di <= last; ++di) {
          const double value = pairs[dbin * side + di + plan.fibre_reach];
          if (value != 0) matrix.At(a + static_cast<int64_t>(dbin) * fibres + di, a) = value;
        }
      }
      flux[a] = normal.data(j, fibre);
      weak[a] = IsWeak(normal.flux_weight(j, fibre), floor);
      double& diagonal = matrix.At(a, a);
      diagonal += Prior(normal.flux_weight(j, fibre), floor, regularize, fine_grid, diagonal);
    }
  }
}

}  // namespace spexd::cpu
#endif  // HWY_ONCE
