// The spread of the light of one wavelength over a fibre's rows: spots summed over columns.
#ifndef SPEXD_CORE_TRACES_LIGHT_DISPERSION_H_
#define SPEXD_CORE_TRACES_LIGHT_DISPERSION_H_

#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "core/base/array.h"
#include "core/model/psf.h"
#include "core/traces/rows/shape_table.h"

namespace spexd::traces {

// Profiles along the trace of a fibre, psi_j at wavelength j. A row spectrum of light s is sum_j s_j psi_j.
struct Dispersion {
  std::vector<int> first_row;  // [wavelength]; may lie off the CCD
  Array<float, 2> value;       // [wavelength, row - first_row]: psi, the part of the light in each row
  Array<float, 2> slope;       // its derivative with respect to the trace's row, 1 / pixels

  int width() const { return static_cast<int>(value.shape(1)); }
};

// Computes profiles of 2 HSIZEY + 1 rows with the shape of GH-0-b and unit flux. They are 0 where the PSF has
// no proper shape.
void Disperse(const Psf& psf, const ShapeTable& shapes, int fibre, absl::Span<const double> wave,
              Dispersion* dispersion);

// Computes P_b(row) = sum_j s_j (integral over the row of He_b n) for b = 1 .. GHDEGY: the contribution of
// lines of the spectrum s to profiles beside them. `out` is [b - 1, row] with rows of the CCD; it is
// overwritten.
void DisperseHermite(const Psf& psf, const ShapeTable& shapes, int fibre, absl::Span<const double> wave,
                     absl::Span<const double> spectrum, Array<float, 2>* out);

}  // namespace spexd::traces

#endif  // SPEXD_CORE_TRACES_LIGHT_DISPERSION_H_
