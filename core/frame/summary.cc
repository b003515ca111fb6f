#include "core/frame/summary.h"

#include <algorithm>
#include <cmath>
#include <limits>

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

// Returns false if no value exceeds kBad2dFitFactor times the median, which is then not needed.
bool MayExceed(const std::vector<double>& values) {
  if (values.empty()) return false;
  const double most = *std::max_element(values.begin(), values.end());
  size_t small = 0;
  for (const double value : values) small += kBad2dFitFactor * value < most ? 1 : 0;
  return small > (values.size() - 1) / 2;
}

}  // namespace

SpectraView::SpectraView(const Spectra& spectra) : bins(spectra.flux.shape(1)) {
  for (int64_t i = 0; i < spectra.flux.shape(0); ++i) {
    fibres.push_back({spectra.flux.Row(i).data(), spectra.ivar.Row(i).data(), spectra.chi2pix.Row(i).data(),
                      spectra.mask.Row(i).data()});
  }
}

void TakeChi2pix(const FibreBins& fibre, int64_t bins, std::vector<double>* sample) {
  sample->resize(bins);
  size_t count = 0;
  for (int64_t j = 0; j < bins; ++j) {
    (*sample)[count] = fibre.chi2pix[j];
    count += fibre.HasData(j) ? 1 : 0;
  }
  sample->resize(count);
}

void ForEachFibre(const SpectraView& spectra, int threads,
                  absl::FunctionRef<void(int64_t fibre, std::vector<double>* scratch)> work) {
  constexpr int64_t kFibresInBlock = 25;  // few threads are started for few spectra
  const int64_t fibres = static_cast<int64_t>(spectra.fibres.size());
  const int64_t blocks = (fibres + kFibresInBlock - 1) / kFibresInBlock;
  // All memory is taken here, so no block can fail.
  std::vector<std::vector<double>> scratch(blocks, std::vector<double>(spectra.bins));
  ParallelFor(blocks, threads, [&](int64_t block) {
    for (int64_t i = block * kFibresInBlock; i < std::min(fibres, (block + 1) * kFibresInBlock); ++i)
      work(i, &scratch[block]);
    return absl::OkStatus();
  }).IgnoreError();
}

std::vector<int64_t> FindBad2dFit(const SpectraView& spectra, int threads) {
  const int64_t fibres = static_cast<int64_t>(spectra.fibres.size()), bins = spectra.bins;
  std::vector<double> fibre_limits(fibres, std::numeric_limits<double>::infinity());
  ForEachFibre(spectra, threads, [&](int64_t i, std::vector<double>* sample) {
    TakeChi2pix(spectra.fibres[i], bins, sample);
    if (MayExceed(*sample)) fibre_limits[i] = kBad2dFitFactor * Median(*sample);
  });
  std::vector<int64_t> bad;  // first the bins that are bad compared with other wavelengths of their fibre
  for (int64_t i = 0; i < fibres; ++i) {
    if (std::isinf(fibre_limits[i])) continue;
    for (int64_t j = 0; j < bins; ++j) {
      const FibreBins& fibre = spectra.fibres[i];
      if (fibre.HasData(j) && fibre.chi2pix[j] > fibre_limits[i]) bad.push_back(i * bins + j);
    }
  }

  // Keeps the bins that are also bad compared with the other fibres. Few bins need the fibres' medians.
  std::vector<std::optional<double>> limits(bad.empty() ? 0 : bins);
  std::vector<double> sample;
  std::erase_if(bad, [&](int64_t index) {
    const int64_t j = index % bins;
    if (!limits[j].has_value()) {
      sample.clear();
      for (const FibreBins& fibre : spectra.fibres) {
        if (fibre.HasData(j)) sample.push_back(fibre.chi2pix[j]);
      }
      limits[j] = kBad2dFitFactor * Median(sample);
    }
    return !(spectra.fibres[index / bins].chi2pix[j] > *limits[j]);
  });
  return bad;
}

char BandOf(const WavelengthGrid& grid) { return BandOf(0.5 * (grid.first + grid.last())); }

char BandOf(double middle_wave) {
  if (middle_wave <= 5800) return 'B';
  return middle_wave >= 7600 ? 'Z' : 'R';
}

std::optional<Scores> ComputeScores(const WavelengthGrid& grid, const SpectraView& spectra, int threads) {
  Scores scores;
  scores.band = BandOf(grid);
  const Window window = WindowOf(scores.band);
  int first = 0, end = grid.count;
  while (first < end && grid.Wave(first) < window.low) ++first;
  while (end > first && grid.Wave(end - 1) >= window.high) --end;
  if (first == end) return std::nullopt;

  const double width = grid.step;
  const auto fibres = static_cast<int64_t>(spectra.fibres.size());
  for (std::vector<double>* score : {&scores.sum_counts, &scores.median_counts, &scores.median_snr})
    score->resize(fibres);
  ForEachFibre(spectra, threads, [&](int64_t i, std::vector<double>* sample) {
    const float *flux = spectra.fibres[i].flux, *ivar = spectra.fibres[i].ivar;
    sample->resize(end - first);
    double sum = 0;
    for (int j = first; j < end; ++j) {
      sum += flux[j];
      (*sample)[j - first] = flux[j] / width;
    }
    scores.sum_counts[i] = sum;
    scores.median_counts[i] = Median(*sample);
    for (int j = first; j < end; ++j) (*sample)[j - first] = std::sqrt(ivar[j] / width) * flux[j];
    scores.median_snr[i] = Median(*sample);
  });
  return scores;
}

}  // namespace spexd
