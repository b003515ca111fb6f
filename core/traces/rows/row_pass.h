// The pass over the image: spectra of CCD rows, and the shift of each fibre in each row.
#ifndef SPEXD_CORE_TRACES_ROWS_ROW_PASS_H_
#define SPEXD_CORE_TRACES_ROWS_ROW_PASS_H_

#include "absl/status/status.h"
#include "core/base/array.h"
#include "core/base/threads/parallel.h"
#include "core/model/image.h"
#include "core/traces/rows/shape_table.h"
#include "core/traces/rows/trace_rows.h"
#include "core/traces/shifts/options.h"

namespace spexd::traces {

// The result of a pass. Arrays are [fibre, row]; ivars are 0 for rows that are left out.
struct RowSpectra {
  Array<float, 2> flux;         // electrons in the row
  Array<float, 2> ivar;         // ivar of the flux, with the moment eliminated
  Array<float, 2> moment;       // flux times the trace's shift in this row, electrons x pixels
  Array<float, 2> moment_ivar;  // ivar of the moment, with the flux eliminated
};

struct RowPass {
  const Image* image;
  const ShapeTable* shapes;
  const TraceRows* rows;
  // The change of profiles beside lines: [fibre, b - 1, row] is P_b / P_0, where P_b = sum over bins of flux
  // times the row's integral of He_b n along the trace. Empty: light is smooth along the trace.
  const Array<float, 3>* beside_lines;
  double profile_error;  // fraction of a profile's peak by which a pixel may be off
  int stride;            // every stride-th row is used; in the others, all is 0
};

// Fits p = sum over fibres of flux phi + moment dphi/dx in each CCD row, with phi the fibre's profile across
// its trace. It is a weighted least-squares fit of two unknowns for each fibre on 2 kFitHalf + 1 columns.
// Jacobi sweeps remove the light of neighbours in a bundle. A row of a fibre is left out if pixels are
// missing or one does not fit (profile_formula.h). The result is the same to the bit for any number of
// threads.
absl::Status FitRows(const RowPass& pass, const TraceShiftOptions& options, const Workers& workers,
                     RowSpectra* spectra);

}  // namespace spexd::traces

#endif  // SPEXD_CORE_TRACES_ROWS_ROW_PASS_H_
