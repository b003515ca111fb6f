// The part of a CCD image that a bundle's spots touch, in float64. An unusable margin as wide as a spot
// surrounds it, so that no later stage needs to clip.
#ifndef SPEXD_CORE_EXTRACT_CPU_STAGES_BUNDLE_IMAGE_H_
#define SPEXD_CORE_EXTRACT_CPU_STAGES_BUNDLE_IMAGE_H_

#include <cstdint>

#include "core/base/memory/aligned_buffer.h"
#include "core/model/image.h"
#include "core/model/psf.h"
#include "core/plan/bundle_plan.h"

namespace spexd::cpu {

class BundleImage {
 public:
  // Copies the columns that the plan's spots reach and applies the mask rule. `image` has the PSF's size.
  void Load(const ImagePlanes& image, const Psf& psf, const BundlePlan& plan);

  // Whether a spot with this first pixel touches the CCD. Only then may its pixels be addressed.
  bool Touches(int first_row, int first_column) const {
    return first_row > -margin_rows_ && first_row < rows_ && first_column > -margin_columns_ &&
           first_column < ccd_columns_;
  }
  // Offset of a spot's first pixel into the arrays. REQUIRES: Touches.
  int64_t Offset(int first_row, int first_column) const {
    return static_cast<int64_t>(first_row + margin_rows_) * stride_ + (first_column - first_column_);
  }

  // Offset of the first pixel of a CCD row.
  int64_t RowOffset(int row) const { return static_cast<int64_t>(row + margin_rows_) * stride_; }

  const double* pixels() const { return pixels_.data(); }
  const double* ivar() const { return ivar_.data(); }
  double* model() { return model_.data(); }
  double* chi2() { return chi2_.data(); }
  int64_t stride() const { return stride_; }
  int64_t size() const { return size_; }

  // The CCD columns covered: [first_ccd_column, end_ccd_column).
  int first_ccd_column() const { return first_column_ > 0 ? first_column_ : 0; }
  int end_ccd_column() const;
  int ccd_rows() const { return rows_; }

 private:
  int rows_ = 0, ccd_columns_ = 0;
  int margin_rows_ = 0, margin_columns_ = 0;
  int first_column_ = 0, end_column_ = 0;  // range of the arrays, in CCD columns; may be negative
  int64_t stride_ = 0, size_ = 0;
  AlignedBuffer<double> pixels_, ivar_, model_, chi2_;
};

// Bytes that Load takes for a bundle whose spots cover `columns` columns.
int64_t BundleImageBytes(const Psf& psf, int columns);

}  // namespace spexd::cpu

#endif  // SPEXD_CORE_EXTRACT_CPU_STAGES_BUNDLE_IMAGE_H_
