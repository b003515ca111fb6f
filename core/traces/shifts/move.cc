#include "core/traces/shifts/move.h"

#include <algorithm>

#include "core/model/traces/legendre.h"
#include "core/traces/shifts/lost_fibres.h"

namespace spexd {
namespace {

void MoveTrace(const std::vector<double>& positions, const ShiftSeries& series, LegendreTable* trace) {
  if (series.empty()) return;
  const int64_t before = trace->coeff.shape(1), wanted = series.shape(1);
  Array<double, 2> coeff({trace->coeff.shape(0), std::max(before, wanted)});
  std::vector<double> basis(static_cast<size_t>(series.shape(0)));
  for (int64_t i = 0; i < coeff.shape(0); ++i) {
    for (int64_t b = 0; b < before; ++b) coeff(i, b) = trace->coeff(i, b);
    LegendreValues(positions[i], static_cast<int>(series.shape(0)), basis.data());
    for (int64_t b = 0; b < wanted; ++b) {
      double shift = 0;
      for (int64_t a = 0; a < series.shape(0); ++a) shift += series(a, b) * basis[a];
      coeff(i, b) += shift;
    }
  }
  trace->coeff = std::move(coeff);
}

}  // namespace

std::vector<double> FibrePositions(const Psf& psf) {
  std::vector<double> positions(static_cast<size_t>(psf.fibres));
  for (int i = 0; i < psf.fibres; ++i) {
    positions[i] = 2 * EvaluateLegendre(psf.x.coeff.Row(i), 0).value / (psf.columns - 1) - 1;
  }
  return positions;
}

Psf MovePsf(const Psf& psf, const ShiftSeries& x, const ShiftSeries& y) {
  const std::vector<double> positions = FibrePositions(psf);
  Psf moved = psf;
  const std::vector<bool> lost = LostFibres(psf);
  MoveTrace(positions, x, &moved.x);
  MoveTrace(positions, y, &moved.y);
  PlaceLostFibres(lost, &moved.x);
  PlaceLostFibres(lost, &moved.y);
  moved.content_hash.clear();
  return moved;
}

Psf MovePsf(const Psf& psf, const TraceShifts& shifts) {
  return MovePsf(psf, shifts.x.series, shifts.y.series);
}

ShiftSeries AddSeries(const ShiftSeries& a, const ShiftSeries& b) {
  ShiftSeries sum({std::max(a.shape(0), b.shape(0)), std::max(a.shape(1), b.shape(1))});
  for (const ShiftSeries* series : {&a, &b}) {
    for (int64_t k = 0; k < series->shape(0); ++k) {
      for (int64_t l = 0; l < series->shape(1); ++l) sum(k, l) += (*series)(k, l);
    }
  }
  return sum;
}

}  // namespace spexd
