#include "core/frame/summary.h"

#include <algorithm>
#include <cmath>

#include "core/base/median.h"

namespace spexd {
namespace {

struct Window {
  double low, high;  // low <= wave < high, Angstrom
};

Window WindowOf(char band) {
  if (band == 'B') return {4000, 5800};
  if (band == 'R') return {5800, 7600};
  return {7600, 9800};
}

bool HasData(const Spectra& spectra, int64_t fibre, int64_t bin) {
  return (spectra.mask(fibre, bin) & kMaskNoData) == 0 && std::isfinite(spectra.chi2pix(fibre, bin));
}

// Collects chi2pix of a fibre's bins with data.
void TakeData(const Spectra& spectra, int64_t fibre, std::vector<double>* sample) {
  const int64_t bins = spectra.chi2pix.shape(1);
  sample->resize(bins);
  size_t count = 0;
  for (int64_t j = 0; j < bins; ++j) {
    (*sample)[count] = spectra.chi2pix(fibre, j);
    count += HasData(spectra, fibre, j) ? 1 : 0;
  }
  sample->resize(count);
}

// Returns false if no value exceeds kBad2dFitFactor times the median; then the median is not needed.
bool MayExceed(const std::vector<double>& values) {
  if (values.empty()) return false;
  const double most = *std::max_element(values.begin(), values.end());
  size_t small = 0;
  for (const double value : values) small += kBad2dFitFactor * value < most ? 1 : 0;
  return small > (values.size() - 1) / 2;
}

}  // namespace

std::vector<int64_t> FindBad2dFit(const Spectra& spectra) {
  const int64_t fibres = spectra.chi2pix.shape(0), bins = spectra.chi2pix.shape(1);
  std::vector<int64_t> bad;  // first those that are bad compared with other wavelengths of their fibre
  std::vector<double> sample;
  for (int64_t i = 0; i < fibres; ++i) {
    TakeData(spectra, i, &sample);
    if (!MayExceed(sample)) continue;
    const double limit = kBad2dFitFactor * Median(sample);
    for (int64_t j = 0; j < bins; ++j) {
      if (HasData(spectra, i, j) && spectra.chi2pix(i, j) > limit) bad.push_back(i * bins + j);
    }
  }

  // Then only those that are also bad compared with the other fibres. Few bins need the fibres' medians.
  std::vector<std::optional<double>> limits(bad.empty() ? 0 : bins);
  std::erase_if(bad, [&](int64_t index) {
    const int64_t j = index % bins;
    if (!limits[j].has_value()) {
      sample.clear();
      for (int64_t i = 0; i < fibres; ++i) {
        if (HasData(spectra, i, j)) sample.push_back(spectra.chi2pix(i, j));
      }
      limits[j] = kBad2dFitFactor * Median(sample);
    }
    return !(spectra.chi2pix.data()[index] > *limits[j]);
  });
  return bad;
}

char BandOf(const WavelengthGrid& grid) { return BandOf(0.5 * (grid.first + grid.last())); }

char BandOf(double middle_wave) {
  if (middle_wave <= 5800) return 'B';
  return middle_wave >= 7600 ? 'Z' : 'R';
}

std::optional<Scores> ComputeScores(const WavelengthGrid& grid, const Spectra& spectra) {
  Scores scores;
  scores.band = BandOf(grid);
  const Window window = WindowOf(scores.band);
  int first = 0, end = grid.count;
  while (first < end && grid.Wave(first) < window.low) ++first;
  while (end > first && grid.Wave(end - 1) >= window.high) --end;
  if (first == end) return std::nullopt;

  const double width = grid.step;
  std::vector<double> counts(end - first), ratios(end - first);
  for (int64_t i = 0; i < spectra.flux.shape(0); ++i) {
    const absl::Span<const float> flux = spectra.flux.Row(i), ivar = spectra.ivar.Row(i);
    double sum = 0;
    for (int j = first; j < end; ++j) {
      sum += flux[j];
      counts[j - first] = flux[j] / width;
      ratios[j - first] = std::sqrt(ivar[j] / width) * flux[j];
    }
    scores.sum_counts.push_back(sum);
    scores.median_counts.push_back(Median(counts));
    scores.median_snr.push_back(Median(ratios));
  }
  return scores;
}

}  // namespace spexd
