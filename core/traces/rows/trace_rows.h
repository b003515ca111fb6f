// Where each fibre's trace crosses each row of the CCD.
#ifndef SPEXD_CORE_TRACES_ROWS_TRACE_ROWS_H_
#define SPEXD_CORE_TRACES_ROWS_TRACE_ROWS_H_

#include <algorithm>
#include <vector>

#include "absl/status/statusor.h"
#include "core/base/array.h"
#include "core/base/threads/parallel.h"
#include "core/model/psf.h"

namespace spexd::traces {

// A trace at a row.
struct TracePosition {
  double x;  // column
  double t;  // wavelength, scaled to [-1, 1] over the domain of XTRACE and YTRACE
};

// The inverse of Y(wavelength), found by Newton's method at every 16th row; a cubic with its values and
// slopes there is used in between, which is off by less than 1e-6 pixels for smooth traces.
class TraceRows {
 public:
  // A fibre whose Y does not increase with the wavelength, or whose traces leave all bounds, has no rows.
  static absl::StatusOr<TraceRows> Make(const Psf& psf, const Workers& workers);

  int fibres() const { return static_cast<int>(first_row_.size()); }
  // The rows that the fibre's wavelengths reach: first_row <= row < end_row.
  int first_row(int fibre) const { return first_row_[fibre]; }
  int end_row(int fibre) const { return end_row_[fibre]; }
  bool HasRows(int fibre) const { return end_row_[fibre] > first_row_[fibre]; }
  bool Reaches(int fibre, int row) const { return row >= first_row_[fibre] && row < end_row_[fibre]; }

  // REQUIRES: Reaches(fibre, row).
  TracePosition At(int fibre, int row) const {
    const int node = row / kNodeRows;
    const double s = static_cast<double>(row % kNodeRows) / kNodeRows;
    const double* a = &nodes_(fibre, node, 0);
    return {Cubic(a, s), Cubic(a + 2, s)};
  }

 private:
  static constexpr int kNodeRows = 16;
  static constexpr int kNodeValues = 4;  // x, dx/ds, t, dt/ds with s = row / kNodeRows

  static double Cubic(const double* a, double s) {
    const double rise = a[kNodeValues] - a[0];
    const double c2 = 3 * rise - 2 * a[1] - a[kNodeValues + 1], c3 = a[1] + a[kNodeValues + 1] - 2 * rise;
    return a[0] + s * (a[1] + s * (c2 + s * c3));
  }
  void Solve(const Psf& psf, int fibre);

  std::vector<int> first_row_, end_row_;
  Array<double, 3> nodes_;  // [fibre, node, value]
};

}  // namespace spexd::traces

#endif  // SPEXD_CORE_TRACES_ROWS_TRACE_ROWS_H_
