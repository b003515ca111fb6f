#include "core/frame/summary.h"

#include <algorithm>
#include <cmath>

#include "core/base/median.h"
#include "core/base/threads/parallel.h"

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

std::optional<Scores> ComputeScores(const WavelengthGrid& grid, const Spectra& spectra, int threads) {
  Scores scores;
  scores.band = BandOf(grid);
  const Window window = WindowOf(scores.band);
  int first = 0, end = grid.count;
  while (first < end && grid.Wave(first) < window.low) ++first;
  while (end > first && grid.Wave(end - 1) >= window.high) --end;
  if (first == end) return std::nullopt;

  const double width = grid.step;
  const int64_t fibres = spectra.flux.shape(0);
  for (std::vector<double>* score : {&scores.sum_counts, &scores.median_counts, &scores.median_snr})
    score->resize(fibres);
  // Blocks of fibres, so that few threads are started for few spectra. Their memory is taken here: no block
  // can fail.
  constexpr int64_t kFibresInBlock = 25;
  const int64_t blocks = (fibres + kFibresInBlock - 1) / kFibresInBlock;
  std::vector<std::vector<double>> samples(blocks, std::vector<double>(end - first));
  ParallelFor(blocks, threads, [&](int64_t block) {
    std::vector<double>& sample = samples[block];
    for (int64_t i = block * kFibresInBlock; i < std::min(fibres, (block + 1) * kFibresInBlock); ++i) {
      const absl::Span<const float> flux = spectra.flux.Row(i), ivar = spectra.ivar.Row(i);
      double sum = 0;
      for (int j = first; j < end; ++j) {
        sum += flux[j];
        sample[j - first] = flux[j] / width;
      }
      scores.sum_counts[i] = sum;
      scores.median_counts[i] = Median(sample);
      for (int j = first; j < end; ++j) sample[j - first] = std::sqrt(ivar[j] / width) * flux[j];
      scores.median_snr[i] = Median(sample);
    }
    return absl::OkStatus();
  }).IgnoreError();
  return scores;
}

}  // namespace spexd
