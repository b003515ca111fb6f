// The formulas of the fit of a series (series.h), defined once for CPUs and GPUs.
#ifndef SPEXD_CORE_TRACES_SHIFTS_SERIES_FORMULA_H_
#define SPEXD_CORE_TRACES_SHIFTS_SERIES_FORMULA_H_

#include <cmath>

#include "core/base/host_device.h"
#include "core/model/traces/legendre.h"
#include "core/model/traces/trace_shifts.h"

namespace spexd {

inline constexpr double kMedianChi2 = 0.4549;  // median of chi-squared with one degree of freedom
inline constexpr double kMaxFloor = 1;         // pixels
inline constexpr int kMaxSeriesRounds = 20;
inline constexpr int kMaxSeriesTerms = (kMaxShiftDegree + 1) * (kMaxShiftDegree + 1);

// The term L_a(u) L_b(t) of a series.
struct SeriesTerm {
  int a, b;
};

// Values of all terms at a position.
SPEXD_HOST_DEVICE inline void SeriesBasis(const SeriesTerm* terms, int count, double u, double t,
                                          double* out) {
  double over_u[kMaxShiftDegree + 1], over_t[kMaxShiftDegree + 1];
  LegendreValues(u, kMaxShiftDegree + 1, over_u);
  LegendreValues(t, kMaxShiftDegree + 1, over_t);
  for (int k = 0; k < count; ++k) out[k] = over_u[terms[k].a] * over_t[terms[k].b];
}

// The floor for judging outliers. It is never nearly 0, because good measurements of bright light would then
// be outliers.
SPEXD_HOST_DEVICE inline double JudgedFloor(double floor, double first_floor) {
  return floor < 0.25 * first_floor ? 0.25 * first_floor : floor;
}
// The squared pull from which a measurement is an outlier, given the median of all squared pulls.
SPEXD_HOST_DEVICE inline double OutlierLimit(double block_clip, double median) {
  const double spread = median / kMedianChi2;
  return block_clip * block_clip * (spread > 1 ? spread : 1);
}
// The squared floor that puts a measurement at the median of chi-squared.
SPEXD_HOST_DEVICE inline double FloorSquared(double residual2, double variance) {
  return residual2 / kMedianChi2 - variance;
}
// The next floor, given the median of all measurements' squared floors.
SPEXD_HOST_DEVICE inline double NextFloor(double median) {
  const double floor = std::sqrt(median > 0 ? median : 0);
  return floor < kMaxFloor ? floor : kMaxFloor;
}
SPEXD_HOST_DEVICE inline bool IsSettled(int round, bool same_outliers, double next, double floor) {
  return round > 1 && same_outliers && std::fabs(next - floor) < 1e-4;
}

}  // namespace spexd

#endif  // SPEXD_CORE_TRACES_SHIFTS_SERIES_FORMULA_H_
