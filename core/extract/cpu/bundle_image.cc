#include "core/extract/cpu/bundle_image.h"

#include <algorithm>
#include <tuple>
#include <utility>

namespace spexd::cpu {
namespace {

// Columns from the leftmost to behind the rightmost pixel of spots that touch the CCD; empty if none does.
std::pair<int, int> ColumnsTouched(const Psf& psf, const BundlePlan& plan) {
  int first = psf.columns, end = 0;
  for (int32_t column : plan.first_column.flat()) {
    if (column <= -psf.spot_columns() || column >= psf.columns) continue;
    first = std::min(first, column);
    end = std::max(end, column + psf.spot_columns());
  }
  if (first >= end) return {0, 0};
  return {first, end};
}

}  // namespace

int BundleImage::end_ccd_column() const {
  return std::max(first_ccd_column(), std::min(end_column_, ccd_columns_));
}

void BundleImage::Load(const Image& image, const Psf& psf, const BundlePlan& plan) {
  rows_ = image.rows();
  ccd_columns_ = image.columns();
  margin_rows_ = psf.spot_rows();
  margin_columns_ = psf.spot_columns();
  std::tie(first_column_, end_column_) = ColumnsTouched(psf, plan);
  stride_ = end_column_ - first_column_;
  size_ = stride_ * (rows_ + 2 * margin_rows_);
  double* pixels = pixels_.Reserve(size_);
  double* ivar = ivar_.Reserve(size_);
  std::fill_n(pixels, size_, 0.0);
  std::fill_n(ivar, size_, 0.0);
  std::fill_n(model_.Reserve(size_), size_, 0.0);
  std::fill_n(chi2_.Reserve(size_), size_, 0.0);
  const int first = first_ccd_column(), count = end_ccd_column() - first;
  for (int row = 0; row < rows_; ++row) {
    const int64_t to = Offset(row, first);
    const float* from_pixels = image.pixels.Row(row).data() + first;
    const float* from_ivar = image.ivar.Row(row).data() + first;
    for (int column = 0; column < count; ++column) {
      pixels[to + column] = from_pixels[column];
      ivar[to + column] = from_ivar[column];
    }
  }
}

int64_t BundleImageBytes(const Psf& psf, const BundlePlan& plan) {
  const auto [first, end] = ColumnsTouched(psf, plan);
  return 4 * int64_t{sizeof(double)} * (end - first) * (psf.rows + 2 * psf.spot_rows());
}

}  // namespace spexd::cpu
