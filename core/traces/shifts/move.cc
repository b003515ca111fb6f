#include "core/traces/shifts/move.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "core/traces/shifts/legendre.h"

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

double EvaluateShift(const ShiftSeries& series, double u, double t) {
  double sum = 0;
  std::vector<double> over_u(static_cast<size_t>(series.shape(0))),
      over_t(static_cast<size_t>(series.shape(1)));
  LegendreValues(u, static_cast<int>(over_u.size()), over_u.data());
  LegendreValues(t, static_cast<int>(over_t.size()), over_t.data());
  for (int64_t a = 0; a < series.shape(0); ++a) {
    for (int64_t b = 0; b < series.shape(1); ++b) sum += series(a, b) * over_u[a] * over_t[b];
  }
  return sum;
}

const char* ShiftStatusName(ShiftStatus status) {
  switch (status) {
    case ShiftStatus::kNone:
      return "none";
    case ShiftStatus::kOk:
      return "ok";
    case ShiftStatus::kWeak:
      return "weak";
    case ShiftStatus::kRelative:
      return "relative";
    case ShiftStatus::kRefused:
      return "refused";
  }
  return "unknown";
}

double ShiftError(const AxisShifts& axis, double u, double t) {
  const int64_t terms = axis.covariance.shape(0);
  if (terms == 0) return 0;
  const int64_t over_t = axis.series.shape(1), over_u = terms / over_t;
  std::vector<double> basis_u(static_cast<size_t>(over_u)), basis_t(static_cast<size_t>(over_t));
  LegendreValues(u, static_cast<int>(over_u), basis_u.data());
  LegendreValues(t, static_cast<int>(over_t), basis_t.data());
  double variance = 0;
  for (int64_t k = 0; k < terms; ++k) {
    for (int64_t l = 0; l < terms; ++l) {
      variance += basis_u[k / over_t] * basis_t[k % over_t] * axis.covariance(k, l) * basis_u[l / over_t] *
                  basis_t[l % over_t];
    }
  }
  return std::sqrt(std::max(variance, 0.0));
}

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
  MoveTrace(positions, x, &moved.x);
  MoveTrace(positions, y, &moved.y);
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
