// Shifts in x of blocks of rows, from the moments of row spectra.
#ifndef SPEXD_CORE_TRACES_ROWS_X_SHIFTS_H_
#define SPEXD_CORE_TRACES_ROWS_X_SHIFTS_H_

#include <vector>

#include "absl/status/statusor.h"
#include "core/base/threads/parallel.h"
#include "core/traces/rows/row_pass.h"
#include "core/traces/rows/trace_rows.h"
#include "core/traces/shifts/options.h"
#include "core/traces/shifts/series.h"

namespace spexd::traces {

// Makes one measurement for each fibre and block. With flux g, moment h and weights w = 1 / var h of its
// rows, dx = sum w g h / sum w (g^2 - var g). The variance of g is subtracted because noise in g would
// otherwise pull dx to 0. A block without enough light has info 0. `positions` are the fibres' u. In a pass
// over every stride-th row, a block has stride times options.block_rows rows.
absl::StatusOr<ShiftMeasurements> MeasureXShifts(const RowSpectra& spectra, const TraceRows& rows,
                                                 const std::vector<double>& positions, int stride,
                                                 const TraceShiftOptions& options, const Workers& workers);

}  // namespace spexd::traces

#endif  // SPEXD_CORE_TRACES_ROWS_X_SHIFTS_H_
