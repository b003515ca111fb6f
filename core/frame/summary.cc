#include "core/frame/summary.h"

#include <algorithm>
#include <cmath>

#include "absl/types/span.h"

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

}  // namespace

double Median(std::vector<double>& values) {
  if (values.empty()) return 0;
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  if (values.size() % 2 == 1) return *middle;
  return 0.5 * (*std::max_element(values.begin(), middle) + *middle);
}

std::vector<int64_t> FindBad2dFit(const Spectra& spectra) {
  const int64_t fibres = spectra.chi2pix.shape(0), bins = spectra.chi2pix.shape(1);
  std::vector<double> sample, by_bin(bins), by_fibre(fibres);
  for (int64_t j = 0; j < bins; ++j) {
    sample.clear();
    for (int64_t i = 0; i < fibres; ++i) {
      if (HasData(spectra, i, j)) sample.push_back(spectra.chi2pix(i, j));
    }
    by_bin[j] = Median(sample);
  }
  for (int64_t i = 0; i < fibres; ++i) {
    sample.clear();
    for (int64_t j = 0; j < bins; ++j) {
      if (HasData(spectra, i, j)) sample.push_back(spectra.chi2pix(i, j));
    }
    by_fibre[i] = Median(sample);
  }

  std::vector<int64_t> bad;
  for (int64_t i = 0; i < fibres; ++i) {
    for (int64_t j = 0; j < bins; ++j) {
      const double chi2 = spectra.chi2pix(i, j);
      if (HasData(spectra, i, j) && chi2 > kBad2dFitFactor * by_bin[j] &&
          chi2 > kBad2dFitFactor * by_fibre[i]) {
        bad.push_back(i * bins + j);
      }
    }
  }
  return bad;
}

char BandOf(const WavelengthGrid& grid) {
  const double mean = 0.5 * (grid.first + grid.last());
  if (mean <= 5800) return 'B';
  return mean >= 7600 ? 'Z' : 'R';
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
  std::vector<double> counts, ratios;
  for (int64_t i = 0; i < spectra.flux.shape(0); ++i) {
    const absl::Span<const float> flux = spectra.flux.Row(i), ivar = spectra.ivar.Row(i);
    double sum = 0;
    counts.clear();
    ratios.clear();
    for (int j = first; j < end; ++j) {
      sum += flux[j];
      counts.push_back(flux[j] / width);
      ratios.push_back(std::sqrt(ivar[j] / width) * flux[j]);
    }
    scores.sum_counts.push_back(sum);
    scores.median_counts.push_back(Median(counts));
    scores.median_snr.push_back(Median(ratios));
  }
  return scores;
}

}  // namespace spexd
