// The shape of a PSF's spots, tabulated in wavelength.
#ifndef SPEXD_CORE_TRACES_ROWS_SHAPE_TABLE_H_
#define SPEXD_CORE_TRACES_ROWS_SHAPE_TABLE_H_

#include "absl/status/statusor.h"
#include "core/base/array.h"
#include "core/base/threads/parallel.h"
#include "core/model/psf.h"

namespace spexd::traces {

// Widths and Gauss-Hermite coefficients of each fibre at uniform wavelengths over the domain of the traces,
// interpolated linearly between them. Tails of spots are left out.
class ShapeTable {
 public:
  static constexpr int kNodes = 257;

  static absl::StatusOr<ShapeTable> Make(const Psf& psf, const Workers& workers);

  int degree_x() const { return degree_x_; }
  int degree_y() const { return degree_y_; }

  // The parameters of a fibre at t, the wavelength scaled to [-1, 1] over the domain.
  class At {
   public:
    float inverse_sigma_x() const { return Value(0); }  // 0 if the width is not positive
    float inverse_sigma_y() const { return Value(1); }
    float hermite(int a, int b) const {
      return Value(2 + a * stride_ + b);
    }  // coefficient of He_a(x) He_b(y)

   private:
    friend class ShapeTable;
    At(const float* low, const float* high, float part, int stride)
        : low_(low), high_(high), part_(part), stride_(stride) {}
    float Value(int k) const { return low_[k] + part_ * (high_[k] - low_[k]); }

    const float *low_, *high_;
    float part_;
    int stride_;
  };
  At Find(int fibre, double t) const;

 private:
  int degree_x_ = 0, degree_y_ = 0;
  Array<float, 3> values_;  // [fibre, node, parameter]: 1/sigma_x, 1/sigma_y, then [a, b]
};

}  // namespace spexd::traces

#endif  // SPEXD_CORE_TRACES_ROWS_SHAPE_TABLE_H_
