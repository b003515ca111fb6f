#include "core/extract/cpu/stages/normal.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "core/extract/band_rule.h"
#include "core/extract/formulas.h"

#ifndef SPEXD_CORE_EXTRACT_CPU_NORMAL_TASK_
#define SPEXD_CORE_EXTRACT_CPU_NORMAL_TASK_
namespace spexd::cpu {

inline constexpr int kMaxLanes = 8;

// One spot whose products are computed.
struct NormalTask {
  const Spots* spots;
  int fibre, bin, bins;
  // The spot times ivar. Rows are `stride` apart, with kMaxLanes zeros before and behind each.
  double* weighted;
  int stride;
};

}  // namespace spexd::cpu
#endif  // SPEXD_CORE_EXTRACT_CPU_NORMAL_TASK_

// The order matters: code after the first include is compiled once for each target.
// clang-format off
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "core/extract/cpu/stages/normal.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "core/extract/cpu/vectors/partial-inl.h"
// clang-format on

HWY_BEFORE_NAMESPACE();
namespace spexd::cpu {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// Writes the spot times ivar; the ends of its rows are zero already. Sums spot * ivar * pixel, and the spot
// over pixels whose ivar is not 0.
void WeighSpot(const NormalTask& task, const BundleImage& image, double* data, double* coverage) {
  const PartialTag d;
  const Spots& spots = *task.spots;
  const double* spot = spots.Spot(task.fibre, task.bin);
  int64_t at = image.Offset(spots.first_row(task.fibre, task.bin), spots.first_column(task.fibre, task.bin));
  double* weighted = task.weighted + kMaxLanes;
  auto sum_data = hn::Zero(d), sum_covered = hn::Zero(d);
  for (int row = 0; row < spots.rows(); ++row) {
    for (int column = 0; column < spots.columns(); column += kPartialLanes) {
      const int left = spots.columns() - column;
      const auto value = LoadFirst(spot + column, left), ivar = LoadFirst(image.ivar() + at + column, left);
      const auto t = hn::Mul(value, ivar);
      sum_covered = hn::Add(sum_covered, hn::IfThenElseZero(hn::Gt(ivar, hn::Zero(d)), value));
      sum_data = hn::MulAdd(t, LoadFirst(image.pixels() + at + column, left), sum_data);
      hn::StoreU(t, d, weighted + column);
    }
    spot += spots.columns();
    at += image.stride();
    weighted += task.stride;
  }
  *data = hn::GetLane(hn::SumOfLanes(d, sum_data));
  *coverage = hn::GetLane(hn::SumOfLanes(d, sum_covered));
}

// Lanes of half a vector, or of a whole one if it is small. Rows are read in vectors and at most one half, so
// that little is read needlessly.
inline constexpr int kHalfLanes = kPartialLanes > 2 ? kPartialLanes / 2 : kPartialLanes;

// The sum of a(row, u) b(row, u) over `rows` rows and over kHalves half vectors in each row.
template <int kHalves>
HWY_INLINE double Dot(const double* a, int a_stride, const double* b, int b_stride, int rows) {
  constexpr int kVectors = kHalves * kHalfLanes / kPartialLanes, kWhole = kVectors * kPartialLanes;
  const PartialTag d;
  const hn::CappedTag<double, kHalfLanes> half;
  PartialVector sum[kVectors + 1];
  for (auto& each : sum) each = hn::Zero(d);
  auto rest = hn::Zero(half);
  for (int row = 0; row < rows; ++row, a += a_stride, b += b_stride) {
    for (int v = 0; v < kVectors; ++v) {
      const int at = v * kPartialLanes;
      sum[v] = hn::MulAdd(hn::LoadU(d, a + at), hn::LoadU(d, b + at), sum[v]);
    }
    if (kWhole < kHalves * kHalfLanes) {
      rest = hn::MulAdd(hn::LoadU(half, a + kWhole), hn::LoadU(half, b + kWhole), rest);
    }
  }
  for (int v = 1; v < kVectors; ++v) sum[0] = hn::Add(sum[0], sum[v]);
  double total = kVectors > 0 ? hn::GetLane(hn::SumOfLanes(d, sum[0])) : 0.0;
  if (kWhole < kHalves * kHalfLanes) total += hn::GetLane(hn::SumOfLanes(half, rest));
  return total;
}

template <int kHalves = 1>
HWY_INLINE double DotAny(int halves, const double* a, int a_stride, const double* b, int b_stride, int rows) {
  if (halves == kHalves) return Dot<kHalves>(a, a_stride, b, b_stride, rows);
  if constexpr (kHalves < 10) {
    return DotAny<kHalves + 1>(halves, a, a_stride, b, b_stride, rows);
  } else {
    double sum = 0;
    for (int k = 0; k < halves; ++k) {
      sum += Dot<1>(a + k * kHalfLanes, a_stride, b + k * kHalfLanes, b_stride, rows);
    }
    return sum;
  }
}

// Computes products of the weighted spot with those of another fibre, for bins `first` .. `last` counted from
// its own, into out[(k - first) * stride]. Where spots do not overlap, nothing is written.
void MultiplySpots(const NormalTask& task, int other, int first, int last, int64_t stride, double* out) {
  const Spots& spots = *task.spots;
  const int32_t *columns = spots.first_columns(other), *rows = spots.first_rows(other);
  const int column = spots.first_column(task.fibre, task.bin), row = spots.first_row(task.fibre, task.bin);
  for (int k = first; k <= last; ++k, out += stride) {
    const int bin = task.bin + k;
    if (bin < 0 || bin >= task.bins) continue;
    const int dx = columns[bin] - column, dy = rows[bin] - row;
    const int width = spots.columns() - std::abs(dx), height = spots.rows() - std::abs(dy);
    if (width <= 0 || height <= 0) continue;
    // Whole halves of vectors, from the other spot's first column on, or up to its last one. Values outside
    // the overlap meet the zeros beside the weighted spot.
    const int halves = (width + kHalfLanes - 1) / kHalfLanes;
    const int from = dx >= 0 ? 0 : spots.columns() - halves * kHalfLanes;
    *out =
        DotAny(halves, task.weighted + kMaxLanes + std::max(dy, 0) * task.stride + from + dx, task.stride,
               spots.Spot(other, bin) + std::max(-dy, 0) * spots.columns() + from, spots.columns(), height);
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace spexd::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace spexd::cpu {

HWY_EXPORT(WeighSpot);
HWY_EXPORT(MultiplySpots);

int64_t NormalEquations::Bytes(const BundlePlan& plan) {
  NormalEquations shape;
  shape.Shape(plan);
  return int64_t{sizeof(double)} * plan.blocks() * (shape.diagonals_ + 4) * shape.stride_;
}

void NormalEquations::Shape(const BundlePlan& plan) {
  fibres_ = plan.block;
  size_ = plan.bins * plan.block;
  reach_ = InterleavedWidth(plan.reach, plan.block);
  block_reach_ = (plan.fibre_reach + plan.block - 1) / plan.block;
  front_ = (reach_ + 7) / 8 * 8;
  stride_ = RowStride(front_ + size_ + kTileColumns);
  diagonals_ = (reach_ + 1) + int64_t{block_reach_} * (2 * reach_ + 1);
}

bool NormalEquations::Begin(const BundlePlan& plan, const std::stop_token& stop) {
  Shape(plan);
  multiplied_ = 0;
  const int blocks = plan.blocks();
  const int64_t of_block = diagonals_ * stride_, behind = front_ + kTileColumns;
  double* const values = values_.Reserve(blocks * of_block + behind);
  for (int i = 0; i <= blocks; ++i) {
    if (stop.stop_requested()) return false;
    std::fill_n(values + i * of_block, i < blocks ? of_block : behind, 0.0);
  }
  coverage_.Assign({blocks, size_});
  data_.Assign({blocks, size_});
  return true;
}

void NormalEquations::Multiply(const BundlePlan& plan, const Spots& spots, const BundleImage& image,
                               int bins) {
  const int stride = (spots.columns() + kMaxLanes - 1) / kMaxLanes * kMaxLanes + 2 * kMaxLanes;
  std::fill_n(scratch_.Reserve((spots.rows() + 1) * stride), (spots.rows() + 1) * stride, 0.0);
  NormalTask task = {&spots, 0, 0, plan.bins, scratch_.data(), stride};
  // Goes bin by bin, so that the spots of all fibres near a bin stay in the cache.
  for (const int end = bins == plan.bins ? bins : bins - plan.reach; multiplied_ < end; ++multiplied_) {
    task.bin = multiplied_;
    for (task.fibre = 0; task.fibre < plan.fibres.count; ++task.fibre) MultiplySpot(plan, image, task);
  }
}

// Computes products of spot (task.fibre, task.bin) with all spots that it overlaps.
void NormalEquations::MultiplySpot(const BundlePlan& plan, const BundleImage& image, const NormalTask& task) {
  const Spots& spots = *task.spots;
  const int m = fibres_, block = task.fibre / m, unknown = task.bin * m + task.fibre % m, reach = plan.reach;
  if (!image.Touches(spots.first_row(task.fibre, task.bin), spots.first_column(task.fibre, task.bin))) return;
  HWY_DYNAMIC_DISPATCH(WeighSpot)(task, image, &data_(block, unknown), &coverage_(block, unknown));
  const int last = std::min(task.fibre + plan.fibre_reach, plan.fibres.count - 1);
  for (int other = task.fibre; other <= last; ++other) {
    const int apart = other / m - block;
    // Bin k of the other fibre is `distance` + k m unknowns further on.
    const int distance = other % m - task.fibre % m;
    double* const to = MutableDiagonals(block, apart) + (apart > 0 ? reach_ * stride_ : 0) + unknown;
    const auto multiply = [&](int from, int end, int64_t stride) {
      const int64_t first = distance + from * m;
      HWY_DYNAMIC_DISPATCH(MultiplySpots)(task, other, from, end, m * stride, to + first * stride);
    };
    if (apart > 0) {
      multiply(-reach, reach, stride_);
    } else {
      multiply(0, reach, stride_);
      // The lower unknown gives the column.
      if (other > task.fibre) multiply(-reach, -1, 1 - stride_);
    }
  }
}

void NormalEquations::AddPrior(double regularize, bool fine_grid) {
  for (int i = 0; i < static_cast<int>(coverage_.shape(0)); ++i) {
    double* diagonal = MutableDiagonals(i, 0);
    for (int member = 0; member < fibres_; ++member) {
      double least = INFINITY;
      for (int j = member; j < size_; j += fibres_) {
        if (HasData(coverage_(i, j))) least = std::min(least, diagonal[j]);
      }
      if (std::isinf(least)) least = 1;
      for (int j = member; j < size_; j += fibres_) {
        diagonal[j] += Prior(coverage_(i, j), diagonal[j], least, regularize, fine_grid);
      }
    }
  }
}

}  // namespace spexd::cpu
#endif  // HWY_ONCE
