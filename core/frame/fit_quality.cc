#include "core/frame/fit_quality.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <limits>
#include <numeric>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/base/median.h"

namespace spexd {
namespace {

constexpr int kFibresToName = 3;

// Finds the median of the values of many fibres. A sample gives bounds between which it lies; only values
// between them are kept.
class MedianOfAll {
 public:
  explicit MedianOfAll(const SpectraView& spectra) : near_(spectra.fibres.size()), below_(near_.size()) {
    constexpr int64_t kStep = 16;
    std::vector<double> sample;
    for (size_t i = 0; i < spectra.fibres.size(); ++i) {
      near_[i].reserve(static_cast<size_t>(spectra.bins));  // no allocation is left to fail in Take
      for (int64_t j = static_cast<int64_t>(i) % kStep; j < spectra.bins; j += kStep)
        if (spectra.fibres[i].HasData(j)) sample.push_back(spectra.fibres[i].chi2pix[j]);
    }
    const auto middle = static_cast<int64_t>(sample.size()) / 2;
    const int64_t margin = 2 + 2 * static_cast<int64_t>(std::sqrt(sample.size()));  // 4 standard deviations
    if (middle < margin) return;
    const auto low = sample.begin() + (middle - margin), high = sample.begin() + (middle + margin - 1);
    std::nth_element(sample.begin(), low, sample.end());
    low_ = *low;
    std::nth_element(low, high, sample.end());
    high_ = *high;
  }

  // Takes the values of a fibre. Thread-safe for different fibres.
  void Take(int64_t fibre, const std::vector<double>& values) {
    int64_t below = 0;
    for (const double value : values) below += value < low_ ? 1 : 0;
    below_[fibre] = below;
    for (const double value : values)
      if (value >= low_ && value <= high_) near_[fibre].push_back(value);
  }

  // The median of all `count` values taken. In one of ten thousand frames the sample misleads; the result is
  // then the bound beyond which the median lies.
  double Median(int64_t count) const {
    const int64_t below = std::accumulate(below_.begin(), below_.end(), int64_t{0});
    std::vector<double> near;
    for (const std::vector<double>& values : near_) near.insert(near.end(), values.begin(), values.end());
    const int64_t lower = (count - 1) / 2 - below, upper = count / 2 - below;
    if (count == 0) return 0;
    if (lower < 0) return low_;
    if (upper >= static_cast<int64_t>(near.size())) return high_;
    std::nth_element(near.begin(), near.begin() + upper, near.end());
    const double high = near[upper];
    return lower == upper ? high : 0.5 * (high + *std::max_element(near.begin(), near.begin() + upper));
  }

 private:
  double low_ = -std::numeric_limits<double>::infinity(), high_ = -low_;
  std::vector<std::vector<double>> near_;  // [fibre]
  std::vector<int64_t> below_;             // [fibre]: number of values below low_
};

constexpr auto IsOutlier = [](double chi2pix) { return chi2pix > kOutlierChi2pix; };

// The fibres that `named` accepts, in descending order of their medians.
template <typename Named>
std::vector<int> WorstFibres(const FrameFit& fit, Named named) {
  std::vector<int> worst;
  for (size_t i = 0; i < fit.fibres.size(); ++i)
    if (named(fit.fibres[i])) worst.push_back(static_cast<int>(i));
  std::stable_sort(worst.begin(), worst.end(), [&fit](int a, int b) {
    return fit.fibres[a].median > fit.fibres[b].median;
  });
  return worst;
}

// Formats a number. Warnings are made when memory may be short, and absl::StrFormat would end the process.
std::string Fixed(double value, int digits) {
  std::array<char, 64> text;
  std::snprintf(text.data(), text.size(), "%.*f", digits, value);
  return text.data();
}

// A list such as "12 (median 2.24), 3 (1.80), 7 (1.71)".
std::string Name(const FrameFit& fit, const std::vector<int>& worst, FibreRange fibres) {
  std::string names;
  for (size_t k = 0; k < std::min<size_t>(worst.size(), kFibresToName); ++k) {
    absl::StrAppend(&names, k == 0 ? "" : ", ", fibres.first + worst[k], k == 0 ? " (median " : " (",
                    Fixed(fit.fibres[worst[k]].median, 2), ")");
  }
  return names;
}

std::string Numbers(const FitQuality& fit) {
  return absl::StrCat("median chi2pix ", Fixed(fit.median, 2), ", ", Fixed(100 * fit.outliers, 1),
                      " % of bins above ", Fixed(kOutlierChi2pix, 2));
}

// The text "at most 1.00 and 5 %".
std::string Limits() {
  return absl::StrCat("at most ", Fixed(kGoodMedian, 2), " and ", Fixed(100 * kGoodOutliers, 0), " %");
}

}  // namespace

FrameFit MeasureFit(const SpectraView& spectra, absl::Span<const int64_t> bad2dfit, int threads) {
  FrameFit fit;
  fit.fibres.resize(spectra.fibres.size());
  std::vector<int64_t> outliers(spectra.fibres.size());
  MedianOfAll median(spectra);
  ForEachFibre(spectra, threads, [&](int64_t i, std::vector<double>* sample) {
    TakeChi2pix(spectra.fibres[i], spectra.bins, sample);
    outliers[i] = std::count_if(sample->begin(), sample->end(), IsOutlier);
    median.Take(i, *sample);
    fit.fibres[i].bins = static_cast<int64_t>(sample->size());
    fit.fibres[i].median = static_cast<float>(Median(*sample));
  });
  for (const int64_t index : bad2dfit) {
    const int64_t i = index / spectra.bins;
    if (IsOutlier(spectra.fibres[i].chi2pix[index % spectra.bins])) --outliers[i];
  }
  int64_t all_outliers = 0;
  for (size_t i = 0; i < outliers.size(); ++i) {
    FitQuality& fibre = fit.fibres[i];
    if (fibre.bins > 0) fibre.outliers = static_cast<float>(outliers[i]) / static_cast<float>(fibre.bins);
    fit.all.bins += fibre.bins;
    all_outliers += outliers[i];
  }
  fit.all.median = static_cast<float>(median.Median(fit.all.bins));
  if (fit.all.bins > 0)
    fit.all.outliers = static_cast<float>(all_outliers) / static_cast<float>(fit.all.bins);
  fit.bad = fit.all.bad() || std::any_of(fit.fibres.begin(), fit.fibres.end(),
                                         [](const FitQuality& fibre) { return fibre.bad(); });
  return fit;
}

void AddFit(const FrameFit& fit, Frame* frame) {
  frame->origin.chi2pix_median = fit.all.median;
  frame->origin.chi2pix_outliers = fit.all.outliers;
  if (!frame->scores.has_value()) return;
  for (const FitQuality& fibre : fit.fibres) {
    frame->scores->median_chi2pix.push_back(fibre.median);
    frame->scores->outliers_chi2pix.push_back(fibre.outliers);
  }
}

std::string DescribeFit(const FrameFit& fit, FibreRange fibres) {
  const std::vector<int> worst = WorstFibres(fit, [](const FitQuality& fibre) { return fibre.median > 0; });
  std::string text = absl::StrCat("Fit: ", Numbers(fit.all), " (in a good frame ", Limits(), ")");
  if (worst.size() > 1) absl::StrAppend(&text, "; worst fibres ", Name(fit, worst, fibres));
  return text;
}

std::optional<std::string> WarnOfFit(const FrameFit& fit, FibreRange fibres) {
  if (!fit.bad) return std::nullopt;
  const std::vector<int> bad = WorstFibres(fit, [](const FitQuality& fibre) { return fibre.bad(); });
  std::string text = absl::StrCat("image and PSF do not fit each other: ", Numbers(fit.all));
  if (!bad.empty()) {
    absl::StrAppend(&text, "; beyond the limits of a good fit in ", bad.size(), " of ", fit.fibres.size(),
                    " fibres, most in ", Name(fit, bad, fibres));
  }
  absl::StrAppend(&text, ". A good fit has ", Limits(),
                  ". Use the PSF of this exposure, or trace_shifts, which moves the traces; if few fibres are "
                  "bad, look for saturated stars and defects there");
  return text;
}

}  // namespace spexd
