#include "core/traces/rows/trace_rows.h"

#include "core/base/status_macros.h"
#include "core/model/traces/legendre.h"
#include "core/traces/rows/trace_formula.h"

namespace spexd::traces {
absl::StatusOr<TraceRows> TraceRows::Make(const Psf& psf, const Workers& workers) {
  TraceRows rows;
  rows.first_row_.assign(static_cast<size_t>(psf.fibres), 0);
  rows.end_row_.assign(static_cast<size_t>(psf.fibres), 0);
  rows.nodes_.Assign({psf.fibres, psf.rows / kNodeRows + 2, kNodeValues});
  SPEXD_RETURN_IF_ERROR(ParallelFor(psf.fibres, workers, [&](int64_t fibre) {
    rows.Solve(psf, static_cast<int>(fibre));
    return absl::OkStatus();
  }));
  return rows;
}

void TraceRows::Solve(const Psf& psf, int fibre) {
  const absl::Span<const double> x = psf.traces.x.coeff.Row(fibre), y = psf.traces.y.coeff.Row(fibre);
  double row_at[kTraceSamples];
  for (int k = 0; k < kTraceSamples; ++k) {
    row_at[k] = EvaluateLegendre(y, TraceSampleAt(k)).value;
    if (k > 0 && !(row_at[k] > row_at[k - 1])) return;
  }
  const RowRange range = RowsReached(row_at[0], row_at[kTraceSamples - 1], psf.rows);
  if (range.first >= range.end) return;
  int sample = 0;
  for (int node = range.first / kNodeRows; node <= (range.end - 1) / kNodeRows + 1; ++node) {
    if (!FindTraceNode(x.data(), static_cast<int>(x.size()), y.data(), static_cast<int>(y.size()), row_at,
                       node, &sample, &nodes_(fibre, node, 0))) {
      return;
    }
  }
  first_row_[fibre] = range.first;
  end_row_[fibre] = range.end;
}

}  // namespace spexd::traces
