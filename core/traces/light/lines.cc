#include "core/traces/light/lines.h"

#include <algorithm>
#include <cmath>

#include "core/base/status_macros.h"
#include "core/model/traces/legendre.h"
#include "core/traces/light/dispersion.h"
#include "core/traces/light/light_formula.h"
#include "core/traces/light/line_fit.h"

namespace spexd::traces {
namespace {

// The square roots of the light above the continuum.
std::vector<double> LineRoots(const std::vector<double>& spectrum) {
  std::vector<double> roots = RunningMedian(spectrum, kContinuumBins);
  for (size_t j = 0; j < roots.size(); ++j) roots[j] = std::sqrt(std::max(spectrum[j] - roots[j], 0.0));
  return roots;
}

double ScaledWave(const Psf& psf, double wave) {
  return 2 * (wave - psf.traces.y.wave_min) / (psf.traces.y.wave_max - psf.traces.y.wave_min) - 1;
}

// The number of rows per Angstrom in a fibre.
double RowsPerAngstrom(const Psf& psf, int fibre, double wave) {
  const double slope = EvaluateLegendre(psf.traces.y.coeff.Row(fibre), ScaledWave(psf, wave)).slope;
  return slope * 2 / (psf.traces.y.wave_max - psf.traces.y.wave_min);
}

int MiddleFibreOf(const TraceRows& rows) {
  return MiddleFibre(rows.fibres(), [&](int fibre) { return rows.HasRows(fibre); });
}

void SamplesNear(const ReferenceLight& reference, std::vector<double> lines, double reach, LinePlan* plan) {
  std::sort(lines.begin(), lines.end());
  size_t next = 0;
  for (size_t k = 0; k < reference.wave().size(); ++k) {
    while (next < lines.size() && lines[next] + reach < reference.wave()[k]) ++next;
    if (next == lines.size()) break;
    if (reference.wave()[k] < lines[next] - reach) continue;
    plan->wave.push_back(reference.wave()[k]);
    plan->light.push_back(reference.light()[k]);
  }
}

// A robust mean over fibres of a line's amplitude; `fits` is [fibre, line].
double MeanAmplitude(const std::vector<LineFit>& fits, int fibres, int lines, int line) {
  const auto fit = [&](int fibre) -> const LineFit& {
    return fits[static_cast<size_t>(fibre) * lines + line];
  };
  std::vector<char> use(static_cast<size_t>(fibres), 1);
  double mean = 0;
  for (int round = 0; round < kMeanRounds; ++round) {
    double sum = 0, info = 0;
    for (int i = 0; i < fibres; ++i) {
      if (!use[i] || !(fit(i).amplitude_info > 0)) continue;
      sum += fit(i).amplitude_info * fit(i).amplitude;
      info += fit(i).amplitude_info;
    }
    if (!(info > 0)) break;
    mean = sum / info;
    for (int i = 0; i < fibres; ++i) {
      if (!(fit(i).amplitude_info > 0)) continue;
      use[i] = IsNearMean(fit(i).amplitude, fit(i).amplitude_info, mean);
    }
  }
  return mean;
}

}  // namespace

int MiddleFibre(int fibres, const std::function<bool(int)>& has_rows) {
  const int middle = fibres / 2;
  for (int k = 0; k < fibres; ++k) {
    const int fibre = middle + (k % 2 == 0 ? k / 2 : -(k + 1) / 2);
    if (fibre >= 0 && fibre < fibres && has_rows(fibre)) return fibre;
  }
  return middle;
}

int ScanTrials(const TraceShiftOptions& options) {
  return 2 * static_cast<int>(std::floor(options.max_dy / kScanStep + 0.01)) + 1;
}

double BestTrial(const std::vector<double>& score) {
  const int64_t best = std::max_element(score.begin(), score.end()) - score.begin();
  return static_cast<double>(best - static_cast<int64_t>(score.size() / 2)) * kScanStep;
}

LinePlan PlanLines(const ReferenceLight& reference, const std::vector<double>& lines, const Psf& psf,
                   int fibre, const TraceShiftOptions& options) {
  LinePlan plan;
  const double middle = 0.5 * (psf.traces.y.wave_min + psf.traces.y.wave_max);
  const double rows_per_angstrom = std::max(RowsPerAngstrom(psf, fibre, middle), 1e-3);
  plan.half = static_cast<int>(
      std::min(std::ceil(options.window * rows_per_angstrom), static_cast<double>(psf.rows)));
  // Twice the margin of a spot, because the dispersion varies.
  SamplesNear(reference, lines, options.window + (2 * psf.stamp().y.middle + 2) / rows_per_angstrom, &plan);
  return plan;
}

absl::StatusOr<double> ScanShift(const CommonLight& light, const ReferenceLight& reference, const Psf& psf,
                                 const TraceRows& rows, const TraceShiftOptions& options,
                                 const Workers& workers) {
  const std::vector<double> seen = LineRoots(light.spectrum);
  const int middle = MiddleFibreOf(rows);
  const int trials = ScanTrials(options), half = trials / 2;
  std::vector<double> score(static_cast<size_t>(trials)), step(light.wave.size());
  for (size_t j = 0; j < step.size(); ++j) step[j] = 1 / RowsPerAngstrom(psf, middle, light.wave[j]);
  SPEXD_RETURN_IF_ERROR(ParallelFor(trials, workers, [&](int64_t trial) {
    std::vector<double> wave = light.wave;
    for (size_t j = 0; j < wave.size(); ++j) {
      wave[j] -= static_cast<double>(trial - half) * kScanStep * step[j];
    }
    const std::vector<double> expected = LineRoots(reference.Smooth(wave));
    double product = 0, square = 0;
    for (size_t j = 0; j < expected.size(); ++j) {
      product += seen[j] * expected[j];
      square += expected[j] * expected[j];
    }
    score[trial] = product / std::sqrt(std::max(square, 1e-300));
    return absl::OkStatus();
  }));
  return BestTrial(score);
}

absl::StatusOr<LineShifts> MeasureLineShifts(const RowSpectra& spectra, const CommonLight& light,
                                             const ReferenceLight& reference,
                                             const std::vector<double>& lines, const Psf& psf,
                                             const ShapeTable& shapes, const TraceRows& rows,
                                             const std::vector<double>& positions,
                                             const TraceShiftOptions& options, const Workers& workers) {
  const int count = static_cast<int>(lines.size());
  LineShifts measured;
  measured.shifts.Resize(static_cast<size_t>(psf.fibres) * count);
  const LinePlan plan = PlanLines(reference, lines, psf, MiddleFibreOf(rows), options);
  const int half = plan.half, width = 2 * half + 1;
  if (plan.wave.empty()) return measured;

  std::vector<LineFit> fits(static_cast<size_t>(psf.fibres) * count);
  SPEXD_RETURN_IF_ERROR(ParallelFor(psf.fibres, workers, [&](int64_t i) {
    const int fibre = static_cast<int>(i);
    Dispersion dispersion;
    Disperse(psf, shapes, fibre, plan.wave, &dispersion);
    std::vector<float> model(static_cast<size_t>(psf.rows)), slope(model.size());
    for (size_t k = 0; k < plan.wave.size(); ++k) {
      const int first = dispersion.first_row[k];
      const float flux = static_cast<float>(plan.light[k]);
      for (int r = std::max(0, -first); r < std::min(dispersion.width(), psf.rows - first); ++r) {
        model[first + r] += flux * dispersion.value(k, r);
        slope[first + r] += flux * dispersion.slope(k, r);
      }
    }
    std::vector<float> f(static_cast<size_t>(width)), w(f.size()), m(f.size()), d(f.size());
    for (int line = 0; line < count; ++line) {
      const double y = Evaluate(psf.traces.y, fibre, lines[line]);
      if (!(y > -psf.rows && y < 2.0 * psf.rows)) continue;
      const int first = static_cast<int>(std::floor(y + 0.5)) - half;
      for (int k = 0; k < width; ++k) {
        const bool on = first + k >= 0 && first + k < psf.rows;
        const int row = std::clamp(first + k, 0, psf.rows - 1);
        f[k] = spectra.flux(i, row);
        w[k] = on ? light.weight(i, row) : 0;
        m[k] = model[row];
        d[k] = slope[row];
      }
      LineFit fit = FitLines(width, f.data(), w.data(), m.data(), d.data());
      if (fit.used > half) fits[static_cast<size_t>(i) * count + line] = fit;
    }
    return absl::OkStatus();
  }));

  for (int line = 0; line < count; ++line) {
    const double amplitude = MeanAmplitude(fits, psf.fibres, count, line);
    double info = 0;
    for (int i = 0; i < psf.fibres; ++i) info += fits[static_cast<size_t>(i) * count + line].amplitude_info;
    const bool seen = amplitude * std::sqrt(info) > options.min_line_snr;
    measured.lines += seen;
    const double t = ScaledWave(psf, lines[line]);
    for (int i = 0; i < psf.fibres; ++i) {
      const size_t index = static_cast<size_t>(i) * count + line;
      measured.shifts.u[index] = positions[i];
      measured.shifts.t[index] = t;
      const double shift_info = seen ? amplitude * amplitude * fits[index].moment_info : 0;
      if (!(shift_info > kMinLineInfo)) continue;
      measured.shifts.value[index] = fits[index].moment / amplitude;
      measured.shifts.info[index] = shift_info;
    }
  }
  return measured;
}

}  // namespace spexd::traces
