// The fit of a series of shifts to many measurements.
#ifndef SPEXD_CORE_TRACES_SHIFTS_SERIES_H_
#define SPEXD_CORE_TRACES_SHIFTS_SERIES_H_

#include <array>
#include <vector>

#include "core/base/array.h"
#include "core/model/traces/trace_shifts.h"
#include "core/traces/shifts/options.h"
#include "core/traces/shifts/series_formula.h"

namespace spexd {

// The sum of two series. It has the larger degrees of the two.
ShiftSeries AddSeries(const ShiftSeries& a, const ShiftSeries& b);

// Measured shifts, each at a position (u, t). All vectors have one size.
struct ShiftMeasurements {
  std::vector<double> value;  // pixels
  std::vector<double> info;   // 1 / variance in 1 / pixels^2; 0 if there is no measurement
  std::vector<double> u, t;

  void Resize(size_t count);
  size_t size() const { return value.size(); }
};

struct SeriesFit {
  ShiftSeries step;             // to be added to the current series
  Array<double, 2> covariance;  // as in AxisShifts
  double corner_error = 0;      // pixels; largest standard error at the corners of the measured region
  double best_error = 0;        // pixels; least standard error over wavelengths, at the middle of the fibres
  double floor = 0;             // pixels; scatter of the measurements beyond their noise
  double chi2 = 0;              // per degree of freedom, without the floor
  int used = 0, clipped = 0;    // numbers of measurements
};

enum class SeriesTerms { kAll, kBetweenFibres };  // kBetweenFibres: terms with a > 0

// The terms of a series, the inverse variance of each term's prior, and its current coefficient.
struct SeriesPrior {
  std::vector<SeriesTerm> terms;
  std::vector<double> info, before;
};
SeriesPrior PriorOf(const std::array<int, 2>& degrees, const ShiftSeries& current, SeriesTerms which,
                    const TraceShiftOptions& options);

// The step and its errors, from the terms' steps and their covariance [term, term]. used, clipped, floor and
// chi2 are left 0. `low`, `middle` and `high`: the least, mean and largest u of the measurements.
SeriesFit FitOfTerms(const SeriesPrior& prior, const std::array<int, 2>& degrees,
                     const std::vector<double>& step, const std::vector<double>& covariance, double low,
                     double middle, double high);

// Fits the step: the posterior of least squares with a Gaussian prior of mean 0 on the sum current + step.
// Measurements beyond block_clip are left out. Each variance is increased by floor^2, with the floor at which
// the median of (residual / error)^2 is that of one degree of freedom.
SeriesFit FitSeries(const ShiftMeasurements& measured, const std::array<int, 2>& degrees,
                    const ShiftSeries& current, SeriesTerms terms, const TraceShiftOptions& options);

}  // namespace spexd

#endif  // SPEXD_CORE_TRACES_SHIFTS_SERIES_H_
