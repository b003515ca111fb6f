// Products with the resolution matrix R [bin, bin] of one fibre, of which a frame stores the diagonals:
// element (diagonal d + kResolutionHalfWidth, j) is R[j + d, j]. Elements outside the matrix are never read;
// files hold any values there.
#ifndef SPEXD_CORE_ANALYSIS_RESOLUTION_MATRIX_H_
#define SPEXD_CORE_ANALYSIS_RESOLUTION_MATRIX_H_

#include <algorithm>
#include <cstdint>

#include "core/analysis/vector_loops.h"
#include "core/base/array.h"
#include "core/model/frame.h"

namespace spexd {

// A diagonal: the columns [first, end) whose elements lie in the matrix, and the distance of each element's
// row below its column.
struct Diagonal {
  int64_t offset, first, end;

  Diagonal(int index, int half_width, int64_t bins)
      : offset(index - half_width),
        first(std::max<int64_t>(0, -offset)),
        end(std::min(bins, bins - offset)) {}
};

// A view of one fibre's matrix. The frame's array must outlive it.
class ResolutionMatrix {
 public:
  ResolutionMatrix(const Array<float, 3>& resolution, int64_t fibre)
      : values_(&resolution(fibre, 0, 0)), bins_(resolution.shape(2)) {}

  int64_t bins() const { return bins_; }
  static Diagonal DiagonalAt(int index, int64_t bins) { return {index, kResolutionHalfWidth, bins}; }
  // The elements of a diagonal, by column.
  const float* values(int index) const { return values_ + index * bins_; }

  // Computes y = R x. `x` and `y` have `bins` elements.
  void Multiply(const double* x, double* y) const {
    std::fill_n(y, bins_, 0.0);
    for (int k = 0; k < kResolutionDiagonals; ++k) {
      const Diagonal diagonal = DiagonalAt(k, bins_);
      const float* const r = values(k);
      AddProducts(r + diagonal.first, x + diagonal.first, diagonal.end - diagonal.first,
                  y + diagonal.first + diagonal.offset);
    }
  }
  // Computes x = R^T y.
  void MultiplyTransposed(const double* y, double* x) const {
    std::fill_n(x, bins_, 0.0);
    for (int k = 0; k < kResolutionDiagonals; ++k) {
      const Diagonal diagonal = DiagonalAt(k, bins_);
      const float* const r = values(k);
      AddProducts(r + diagonal.first, y + diagonal.first + diagonal.offset, diagonal.end - diagonal.first,
                  x + diagonal.first);
    }
  }

 private:
  const float* values_;
  int64_t bins_;
};

}  // namespace spexd

#endif  // SPEXD_CORE_ANALYSIS_RESOLUTION_MATRIX_H_
