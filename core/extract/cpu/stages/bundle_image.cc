#include "core/extract/cpu/stages/bundle_image.h"

#include <algorithm>

namespace spexd::cpu {
int BundleImage::end_ccd_column() const {
  return std::max(first_ccd_column(), std::min(end_column_, ccd_columns_));
}

void BundleImage::Load(const ImagePlanes& image, const Psf& psf, const BundlePlan& plan) {
  rows_ = image.rows;
  ccd_columns_ = image.columns;
  margin_rows_ = psf.spot_rows();
  margin_columns_ = psf.spot_columns();
  first_column_ = plan.first_column;
  end_column_ = plan.end_column;
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
    const int64_t to = Offset(row, first), from = int64_t{row} * ccd_columns_ + first;
    for (int column = 0; column < count; ++column) {
      const Pixel pixel = LoadPixel(image, static_cast<size_t>(from + column));
      pixels[to + column] = pixel.value;
      ivar[to + column] = pixel.ivar;
    }
  }
}

int64_t BundleImageBytes(const Psf& psf, int columns) {
  return 4 * int64_t{sizeof(double)} * columns * (psf.rows + 2 * psf.spot_rows());
}

}  // namespace spexd::cpu
