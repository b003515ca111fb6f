#include "core/extract/cpu/stages/factor.h"

#include <algorithm>
#include <cmath>

#include "core/model/tolerances.h"

#ifndef SPEXD_CORE_EXTRACT_CPU_FACTOR_TASK_
#define SPEXD_CORE_EXTRACT_CPU_FACTOR_TASK_
namespace spexd::cpu {
struct FactorTask {
  BandView matrix;
  const int* width;
  double* columns;  // L(column + k, column), [column, k], with a vector of zeros behind each width
  int64_t column_stride;
  double* lower;  // L(row, row - k), [k, row]; for k = 0: 1 / L(row, row)
  int64_t lower_stride;
};
}  // namespace spexd::cpu
#endif  // SPEXD_CORE_EXTRACT_CPU_FACTOR_TASK_

// The order matters: code after the first include is compiled once for each target.
// clang-format off
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "core/extract/cpu/stages/factor.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
// clang-format on

HWY_BEFORE_NAMESPACE();
namespace spexd::cpu {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// Computes columns [begin, end) of the factor, each from the earlier columns whose band reaches it.
// `earliest`: the first such column, kept from call to call.
void FactorColumns(const FactorTask& task, int begin, int end, int* earliest) {
  const hn::ScalableTag<double> d;
  const int lanes = static_cast<int>(hn::Lanes(d));
  const int* width = task.width;
  for (int j = begin; j < end; ++j) {
    const int last = width[j];
    double* column = task.columns + j * task.column_stride;
    for (int k = 0; k <= last; ++k) column[k] = task.matrix.Diagonal(k)[j];
    for (int k = last + 1; k < task.column_stride && k <= last + lanes; ++k) column[k] = 0;
    const double least = kMinPivot * column[0];
    while (*earliest + width[*earliest] < j) ++*earliest;
    int first = *earliest;
    for (int k = 0; k <= last; k += lanes) {
      // Widths fall by at most one from column to column, so later columns reach at least as far.
      while (first < j && first + width[first] < j + k) ++first;
      auto sum = hn::LoadU(d, column + k);
      const double* from = task.columns + first * task.column_stride + (j - first);
      for (int i = first; i < j; ++i, from += task.column_stride - 1) {
        sum = hn::NegMulAdd(hn::Set(d, *from), hn::LoadU(d, from + k), sum);
      }
      hn::StoreU(sum, d, column + k);
    }
    const double pivot = std::sqrt(std::max(least, column[0]));
    const double inverse = 1 / pivot;
    column[0] = pivot;
    task.lower[j] = inverse;
    for (int k = 1; k <= last; ++k) {
      column[k] *= inverse;
      task.lower[k * task.lower_stride + j + k] = column[k];
    }
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace spexd::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace spexd::cpu {

HWY_EXPORT(FactorColumns);

namespace {
// Number of columns between two checks of the stop token.
constexpr int kStretch = 64;
constexpr int kMaxLanes = 8;
}  // namespace

void BandFactor::SetWidths(const SymmetricBand& matrix) {
  size_ = matrix.size();
  width_ = matrix.width;
  row_width_.resize(size_);
  widest_of_8_.assign((size_ + 7) / 8, 0);
  for (int row = 0, first = 0; row < size_; ++row) {
    while (first + width_[first] < row) ++first;
    row_width_[row] = row - first;
    widest_of_8_[row / 8] = std::max(widest_of_8_[row / 8], row - first);
  }
}

int BandFactor::TileWidth(int row) const {
  const int last = std::min((row + kTileColumns - 1) / 8, static_cast<int>(widest_of_8_.size()) - 1);
  int widest = 0;
  for (int k = std::max(row, 0) / 8; k <= last; ++k) widest = std::max(widest, widest_of_8_[k]);
  return widest;
}

bool BandFactor::Compute(const SymmetricBand& matrix, int front, const std::stop_token& stop,
                         AlignedBuffer<double>* scratch) {
  SetWidths(matrix);
  front_ = (front + 7) / 8 * 8;
  stride_ = RowStride(front_ + size_ + kTileColumns);
  const int64_t count = (matrix.most() + 1) * stride_;
  std::fill_n(values_.Reserve(count), count, 0.0);
  const int64_t column_stride = matrix.most() + 1 + 2 * kMaxLanes;
  const FactorTask task = {matrix.view(), width_.data(),           scratch->Reserve(size_ * column_stride),
                           column_stride, values_.data() + front_, stride_};
  int earliest = 0;
  for (int begin = 0; begin < size_; begin += kStretch) {
    if (stop.stop_requested()) return false;
    HWY_DYNAMIC_DISPATCH(FactorColumns)(task, begin, std::min(begin + kStretch, size_), &earliest);
  }
  return true;
}

void BandFactor::Solve(double* x) const {
  const double* inverse = this->inverse();
  for (int row = 0; row < size_; ++row) {
    double sum = x[row];
    const double* lower = inverse + row;
    for (int k = row_width_[row]; k > 0; --k) sum -= lower[k * stride_] * x[row - k];
    x[row] = sum * inverse[row];
  }
  for (int row = size_ - 1; row >= 0; --row) {
    double sum = x[row];
    const double* lower = inverse + row;
    for (int k = width_[row]; k > 0; --k) sum -= lower[k * stride_ + k] * x[row + k];
    x[row] = sum * inverse[row];
  }
}

}  // namespace spexd::cpu
#endif  // HWY_ONCE
