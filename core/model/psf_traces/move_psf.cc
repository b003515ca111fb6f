#include "core/model/psf_traces/move_psf.h"

#include <algorithm>

#include "core/model/psf_traces/lost_fibres.h"
#include "core/model/traces/legendre.h"

namespace spexd {

LegendreTable MovedTraces(const LegendreTable& traces, const std::vector<double>& positions,
                          const ShiftSeries& series) {
  if (series.empty()) return traces;
  const int64_t before = traces.coeff.shape(1), wanted = series.shape(1);
  LegendreTable moved = {.coeff = Array<double, 2>({traces.coeff.shape(0), std::max(before, wanted)}),
                         .wave_min = traces.wave_min,
                         .wave_max = traces.wave_max};
  std::vector<double> basis(static_cast<size_t>(series.shape(0)));
  for (int64_t i = 0; i < moved.coeff.shape(0); ++i) {
    for (int64_t b = 0; b < before; ++b) moved.coeff(i, b) = traces.coeff(i, b);
    LegendreValues(positions[i], static_cast<int>(series.shape(0)), basis.data());
    for (int64_t b = 0; b < wanted; ++b) {
      moved.coeff(i, b) += ShiftOfCoefficient(series.data(), static_cast<int>(series.shape(0)),
                                              static_cast<int>(wanted), static_cast<int>(b), basis.data());
    }
  }
  return moved;
}

std::vector<double> FibrePositions(const Psf& psf) {
  std::vector<double> positions(static_cast<size_t>(psf.fibres));
  for (int i = 0; i < psf.fibres; ++i) {
    positions[i] = 2 * EvaluateLegendre(psf.traces.x.coeff.Row(i), 0).value / (psf.columns - 1) - 1;
  }
  return positions;
}

Psf MovePsf(const Psf& psf, const ShiftSeries& x, const ShiftSeries& y) {
  const std::vector<double> positions = FibrePositions(psf);
  Psf moved = psf;
  const std::vector<bool> lost = LostFibres(psf);
  moved.traces.x = MovedTraces(psf.traces.x, positions, x);
  moved.traces.y = MovedTraces(psf.traces.y, positions, y);
  PlaceLostFibres(lost, &moved.traces.x);
  PlaceLostFibres(lost, &moved.traces.y);
  moved.content_hash.clear();
  return moved;
}

Psf MovePsf(const Psf& psf, const TraceShifts& shifts) {
  return MovePsf(psf, shifts.x.series, shifts.y.series);
}

}  // namespace spexd
