#include "core/traces/rows/trace_rows.h"

#include <cmath>

#include "core/base/status_macros.h"
#include "core/model/traces/legendre.h"

namespace spexd::traces {
namespace {

constexpr int kSamples = 129;  // of Y, for first guesses
constexpr int kMaxNewtonSteps = 4;
constexpr double kRowError = 1e-7;  // pixels, at which Newton's method ends
constexpr double kFarAway = 1e6;    // pixels; no trace on a CCD is as far or as steep

}  // namespace

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
  const absl::Span<const double> x = psf.x.coeff.Row(fibre), y = psf.y.coeff.Row(fibre);
  double row_at[kSamples], t_at[kSamples];
  for (int k = 0; k < kSamples; ++k) {
    t_at[k] = 2.0 * k / (kSamples - 1) - 1;
    row_at[k] = EvaluateLegendre(y, t_at[k]).value;
    if (k > 0 && !(row_at[k] > row_at[k - 1])) return;
  }
  const int first = static_cast<int>(std::ceil(std::clamp(row_at[0], 0.0, 1.0 * psf.rows)));
  const int end = static_cast<int>(std::floor(std::clamp(row_at[kSamples - 1], -1.0, psf.rows - 1.0))) + 1;
  if (first >= end) return;
  int k = 0;
  for (int node = first / kNodeRows; node <= (end - 1) / kNodeRows + 1; ++node) {
    const double row = node * kNodeRows;
    while (k + 2 < kSamples && row_at[k + 1] < row) ++k;
    double t = t_at[k] + (row - row_at[k]) * (t_at[k + 1] - t_at[k]) / (row_at[k + 1] - row_at[k]);
    ValueAndSlope at = EvaluateLegendre(y, t);
    for (int step = 0; step < kMaxNewtonSteps && at.slope > 0 && std::abs(at.value - row) > kRowError;
         ++step) {
      t += (row - at.value) / at.slope;
      at = EvaluateLegendre(y, t);
    }
    if (!(at.slope > 0) || !(std::abs(at.value - row) < 1e-3)) return;
    const ValueAndSlope column = EvaluateLegendre(x, t);
    if (!(std::abs(column.value) < kFarAway && std::abs(column.slope) < kFarAway)) return;
    const double dt = kNodeRows / at.slope;
    nodes_(fibre, node, 0) = column.value;
    nodes_(fibre, node, 1) = column.slope * dt;
    nodes_(fibre, node, 2) = t;
    nodes_(fibre, node, 3) = dt;
  }
  first_row_[fibre] = first;
  end_row_[fibre] = end;
}

}  // namespace spexd::traces
