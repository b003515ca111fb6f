#include "core/analysis/sky/sky_lines.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include "core/analysis/sky/sky_constants.h"
#include "core/base/median.h"

namespace spexd {
namespace {

struct Bins {
  int64_t first, end;
};
Bins Around(int64_t bin, int64_t half, int64_t bins) {
  return {std::max<int64_t>(0, bin - half), std::min(bins, bin + half + 1)};
}

// The data of one line in the sky fibres, whose chi-square depends on the error of the line's wavelength.
class LineResiduals {
 public:
  LineResiduals(const std::vector<double>& sky, const std::vector<double>& slope)
      : sky_(sky), slope_(slope) {}

  void Add(size_t fibre, int64_t bin, double residual, double variance) {
    if (fibre >= fibres_.size()) fibres_.resize(fibre + 1);
    fibres_[fibre].push_back(
        {SquareOf(residual), variance + SquareOf(kSkyScatter * sky_[bin]), SquareOf(slope_[bin])});
  }
  // The least error that explains the residuals; none if there are no data. Larger errors explain more.
  std::optional<double> LeastShift() const {
    if (fibres_.empty()) return std::nullopt;
    int low = 0, high = kShifts;
    while (low < high) {
      const int middle = (low + high) / 2;
      (Explains(ShiftTried(middle)) ? high : low) = Explains(ShiftTried(middle)) ? middle : middle + 1;
    }
    return low < kShifts ? ShiftTried(low) : kMaxShiftTried;
  }

 private:
  struct Datum {
    double residual2, variance, slope2;
  };
  bool Explains(double shift) const {
    std::vector<double> means;
    for (const std::vector<Datum>& fibre : fibres_) {
      if (fibre.empty()) continue;  // a fibre without data says nothing
      double sum = 0;
      for (const Datum& datum : fibre)
        sum += datum.residual2 / (datum.variance + SquareOf(shift) * datum.slope2);
      means.push_back(sum / static_cast<double>(fibre.size()));
    }
    return Median(means) / kMedianOfChi2 <= 1;
  }

  const std::vector<double>& sky_;
  const std::vector<double>& slope_;
  std::vector<std::vector<Datum>> fibres_;
};

std::vector<double> SlopeOf(const std::vector<double>& sky, const std::vector<double>& wave) {
  std::vector<double> slope(sky.size(), 0);
  for (size_t j = 1; j + 1 < sky.size(); ++j) {
    slope[j] = std::abs((sky[j + 1] - sky[j - 1]) / (wave[j + 1] - wave[j - 1]));
  }
  return slope;
}

// The scale of a line in a fibre; none if the data do not determine it.
std::optional<LineScale> FitLine(const UsableSpectra& spectra, int64_t fibre, const double* model,
                                 const std::vector<bool>& without_sky, Bins bins) {
  double s0 = 0, s1 = 0, s2 = 0, f0 = 0, f1 = 0;
  for (int64_t j = bins.first; j < bins.end; ++j) {
    if (without_sky[j]) continue;
    const double w = spectra.ivar(fibre, j), f = spectra.flux(fibre, j), m = model[j];
    s0 += w;
    s1 += w * m;
    s2 += w * m * m;
    f0 += w * f;
    f1 += w * f * m;
  }
  const LineScale line = ScaleOfSums(s0, s1, s2, f0, f1);
  return line.variance > 0 ? std::optional(line) : std::nullopt;
}

// The mean scale of a fibre's lines without outliers.
LineScale Combine(const std::vector<LineScale>& lines) {
  std::vector<double> weights, inlier_weights;
  for (const LineScale& line : lines) {
    weights.push_back(1 / (line.variance + SquareOf(kSkyScatter)));
    inlier_weights.push_back(1 / (line.variance + SquareOf(kInlierScatter)));
  }
  size_t left = lines.size();
  while (true) {
    double sum = 0, total = 0;
    for (size_t k = 0; k < lines.size(); ++k) {
      sum += weights[k] * lines[k].scale;
      total += weights[k];
    }
    const LineScale mean{sum / total, 1 / total};
    std::vector<double> chi2;
    size_t worst = 0;
    double most = 0;
    for (size_t k = 0; k < lines.size(); ++k) {
      const double value = inlier_weights[k] * SquareOf(lines[k].scale - mean.scale);
      if (value > 0) chi2.push_back(value);
      if (value > most) {
        most = value;
        worst = k;
      }
    }
    if (left <= 1 || chi2.empty() || !(most > kMaxResidual * Median(chi2))) return mean;
    weights[worst] = inlier_weights[worst] = 0;
    --left;
  }
}

// Shrinks scales towards 1. If their scatter is mostly noise, they would add it to the spectra.
void Shrink(const std::vector<std::optional<LineScale>>& fibres, std::vector<double>* throughput) {
  std::vector<double> scales, variances, deviations;
  for (const auto& fibre : fibres) {
    if (!fibre.has_value()) continue;
    scales.push_back(fibre->scale);
    variances.push_back(fibre->variance);
  }
  if (scales.size() <= 2) return;
  const double middle = Median(scales);
  for (const double scale : scales) deviations.push_back(std::abs(scale - middle));
  const double scatter = std::max(0.0, SquareOf(kMedianToSigma * Median(deviations)) - Median(variances));
  for (size_t i = 0; i < fibres.size(); ++i) {
    if (!fibres[i].has_value()) continue;
    (*throughput)[i] = ShrunkScale(*fibres[i], scatter);
  }
}

}  // namespace

SkyLines FindSkyLines(const Array<double, 2>& model, const std::vector<int>& fibres) {
  const int64_t bins = model.shape(1);
  SkyLines lines;
  lines.mean.assign(bins, 0);
  for (const int fibre : fibres) {
    for (int64_t j = 0; j < bins; ++j) lines.mean[j] += model(fibre, j);
  }
  for (double& value : lines.mean) value /= static_cast<double>(fibres.size());
  const std::vector<double>& mean = lines.mean;
  const double least = kMinPeak * *std::max_element(mean.begin(), mean.end());
  for (int64_t j = 1; j + 1 < bins; ++j) {
    if (mean[j] > mean[j + 1] && mean[j] > mean[j - 1] && mean[j] > least) lines.peaks.push_back(j);
  }
  return lines;
}

std::vector<double> SystematicVariance(const UsableSpectra& spectra, const std::vector<int>& sky_fibres,
                                       const Array<double, 2>& model, const Array<double, 2>& variance) {
  const int64_t bins = spectra.bins();
  const SkyLines lines = FindSkyLines(model, sky_fibres);
  const std::vector<double> slope = SlopeOf(lines.mean, spectra.wave);
  std::vector<double> extra(bins, 0);
  for (const int64_t peak : lines.peaks) {
    LineResiduals residuals(lines.mean, slope);
    const Bins core = Around(peak, kPeakCore, bins), reach = Around(peak, kPeakReach, bins);
    for (size_t i = 0; i < sky_fibres.size(); ++i) {
      const int fibre = sky_fibres[i];
      for (int64_t j = core.first; j < core.end; ++j) {
        if (!(spectra.ivar(fibre, j) > 0)) continue;
        const double residual = spectra.flux(fibre, j) - model(fibre, j),
                     known = 1 / spectra.ivar(fibre, j) + variance(fibre, j);
        if (MayBeSky(residual, known, lines.mean[j], slope[j])) residuals.Add(i, j, residual, known);
      }
    }
    const std::optional<double> shift = residuals.LeastShift();
    if (!shift.has_value()) continue;
    // Where lines overlap, the variance of the later one is used, as in the pipeline.
    for (int64_t j = reach.first; j < reach.end; ++j) {
      extra[j] = ShiftVariance(lines.mean[j], *shift, slope[j]);
    }
  }
  return extra;
}

std::vector<double> LineThroughput(const UsableSpectra& spectra, const SkyLines& lines,
                                   const Array<double, 2>& model, const std::vector<bool>& without_sky) {
  std::vector<std::optional<LineScale>> fibres(spectra.fibres());
  const auto bin_from = [&](double wave) {
    return std::lower_bound(spectra.wave.begin(), spectra.wave.end(), wave) - spectra.wave.begin();
  };
  std::vector<Bins> windows;
  for (const int64_t peak : lines.peaks) {
    const double wave = spectra.wave[peak];
    windows.push_back({bin_from(wave - kLineHalf), bin_from(wave + kLineHalf + 1e-6)});
  }
  for (int64_t i = 0; i < spectra.fibres(); ++i) {
    std::vector<LineScale> scales;
    for (const Bins& window : windows) {
      if (const auto line = FitLine(spectra, i, &model(i, 0), without_sky, window)) scales.push_back(*line);
    }
    if (scales.empty()) continue;
    const LineScale mean = Combine(scales);
    if (mean.variance < kMaxThroughputVariance) fibres[i] = mean;
  }
  std::vector<double> throughput(spectra.fibres(), 1);
  Shrink(fibres, &throughput);
  return throughput;
}

void LinesAlone(const UsableSpectra& spectra, const SkyLines& lines, const double* model, double* line) {
  const int64_t bins = spectra.bins();
  std::vector<bool> near(bins, false);
  for (const int64_t peak : lines.peaks) {
    for (int64_t j = 0; j < bins; ++j) {
      if (std::abs(spectra.wave[j] - spectra.wave[peak]) <= kLineContinuumHalf) near[j] = true;
    }
  }
  std::fill_n(line, bins, 0.0);
  int64_t before = -1;  // the last continuum bin; -1: none yet
  for (int64_t j = 0; j < bins;) {
    if (!near[j]) {
      before = j++;
      continue;
    }
    int64_t after = j;  // the next continuum bin; `bins` if there is none
    while (after < bins && near[after]) ++after;
    if (before < 0 && after == bins) return;
    for (; j < after; ++j) {
      const int64_t low = before < 0 ? after : before, high = after == bins ? before : after;
      const double part =
          low == high ? 0 : (spectra.wave[j] - spectra.wave[low]) / (spectra.wave[high] - spectra.wave[low]);
      line[j] = std::max(0.0, model[j] - (model[low] + part * (model[high] - model[low])));
    }
  }
}

}  // namespace spexd
