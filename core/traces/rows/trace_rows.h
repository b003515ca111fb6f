// The positions at which each fibre's trace crosses the rows of the CCD.
#ifndef SPEXD_CORE_TRACES_ROWS_TRACE_ROWS_H_
#define SPEXD_CORE_TRACES_ROWS_TRACE_ROWS_H_

#include <algorithm>
#include <vector>

#include "absl/status/statusor.h"
#include "core/base/array.h"
#include "core/base/threads/parallel.h"
#include "core/model/psf.h"
#include "core/traces/rows/trace_formula.h"

namespace spexd::traces {

// The inverse of Y(wavelength), found by Newton's method at every 16th row. In between, a cubic with the
// values and slopes found there is used, which is off by less than 1e-6 pixels for smooth traces.
class TraceRows {
 public:
  // Finds the rows of all fibres. A fibre whose Y does not increase with the wavelength, or whose traces
  // leave all bounds, has no rows.
  static absl::StatusOr<TraceRows> Make(const Psf& psf, const Workers& workers);

  int fibres() const { return static_cast<int>(first_row_.size()); }
  // The rows that the fibre's wavelengths reach: first_row <= row < end_row.
  int first_row(int fibre) const { return first_row_[fibre]; }
  int end_row(int fibre) const { return end_row_[fibre]; }
  bool HasRows(int fibre) const { return end_row_[fibre] > first_row_[fibre]; }
  bool Reaches(int fibre, int row) const { return row >= first_row_[fibre] && row < end_row_[fibre]; }

  // The position of a fibre's trace at a row. REQUIRES: Reaches(fibre, row).
  TracePosition At(int fibre, int row) const { return TraceAt(&nodes_(fibre, 0, 0), row); }

 private:
  void Solve(const Psf& psf, int fibre);

  std::vector<int> first_row_, end_row_;
  Array<double, 3> nodes_;  // [fibre, node, value]
};

}  // namespace spexd::traces

#endif  // SPEXD_CORE_TRACES_ROWS_TRACE_ROWS_H_
