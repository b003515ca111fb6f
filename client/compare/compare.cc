#include "client/compare/compare.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "absl/strings/str_format.h"
#include "core/model/low_pass.h"

namespace spexd::cli {
namespace {

constexpr double kMaxChi2Pix = 10;
constexpr double kSigmaTail = 0.158655253931457;  // fraction of a normal distribution below -1 sigma

absl::Status CheckSameGrid(const WavelengthGrid& a, const WavelengthGrid& b) {
  // Files have rounded wavelengths, so the comparison has a tolerance.
  const bool same =
      a.count == b.count && std::abs(a.first - b.first) < 1e-6 && std::abs(a.last() - b.last()) < 1e-6;
  if (same) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrFormat("the wavelength grids differ: %g to %g in %d bins, %g to %g in %d bins", a.first,
                      a.last(), a.count, b.first, b.last(), b.count));
}

double Quantile(const std::vector<double>& sorted, double fraction) {
  const double at = fraction * static_cast<double>(sorted.size() - 1);
  const size_t below = static_cast<size_t>(at);
  const size_t above = std::min(below + 1, sorted.size() - 1);
  return sorted[below] + (at - static_cast<double>(below)) * (sorted[above] - sorted[below]);
}

// Returns the largest difference of one fibre's resolution elements whose row and column are both good.
double ResolutionDifference(const Spectra& a, int i, const Spectra& b, int k, const std::vector<bool>& good) {
  const int bins = static_cast<int>(good.size());
  double most = 0;
  for (int d = -kResolutionHalfWidth; d <= kResolutionHalfWidth; ++d) {
    const absl::Span<const float> ra = a.resolution.Row(i, d + kResolutionHalfWidth);
    const absl::Span<const float> rb = b.resolution.Row(k, d + kResolutionHalfWidth);
    for (int j = 0; j < bins; ++j) {
      const int row = j + d;
      if (!good[j] || (row >= 0 && row < bins && !good[row])) continue;
      const double difference = std::abs(static_cast<double>(ra[j]) - static_cast<double>(rb[j]));
      most = std::max(most, std::isnan(difference) ? std::numeric_limits<double>::infinity() : difference);
    }
  }
  return most;
}

// Returns R times a spectrum; NaN for rows that reach beyond the grid.
std::vector<double> Resolve(const Spectra& spectra, int fibre, const std::vector<double>& spectrum) {
  const int bins = static_cast<int>(spectrum.size());
  std::vector<double> resolved(bins, std::numeric_limits<double>::quiet_NaN());
  for (int row = kResolutionHalfWidth; row < bins - kResolutionHalfWidth; ++row) {
    resolved[row] = 0;
    for (int d = -kResolutionHalfWidth; d <= kResolutionHalfWidth; ++d) {
      resolved[row] += spectra.resolution(fibre, d + kResolutionHalfWidth, row - d) * spectrum[row - d];
    }
  }
  return resolved;
}

}  // namespace

double FrameDifference::Within(double limit) const {
  if (pulls.empty()) return 1;
  const auto end = std::lower_bound(pulls.begin(), pulls.end(), limit);
  return static_cast<double>(end - pulls.begin()) / static_cast<double>(pulls.size());
}

absl::StatusOr<FrameDifference> CompareFrames(const Frame& a, const Frame& b) {
  if (absl::Status status = CheckSameGrid(a.grid, b.grid); !status.ok()) return status;
  FrameDifference result;
  result.fibres = Intersect(a.fibres, b.fibres);
  if (result.fibres.empty()) {
    return absl::InvalidArgumentError(absl::StrFormat("no fibre is in both: %d to %d, %d to %d",
                                                      a.fibres.first, a.fibres.end() - 1, b.fibres.first,
                                                      b.fibres.end() - 1));
  }
  const int bins = a.grid.count;
  double squares = 0;
  std::vector<bool> good(bins);
  for (int fibre = result.fibres.first; fibre < result.fibres.end(); ++fibre) {
    const int i = fibre - a.fibres.first, k = fibre - b.fibres.first;
    for (int j = 0; j < bins; ++j) {
      ++result.bins;
      const uint32_t mask_a = a.spectra.mask(i, j), mask_b = b.spectra.mask(k, j);
      result.mask_differs += mask_a != mask_b;
      good[j] = mask_a == 0 && mask_b == 0;
      if (!good[j]) continue;
      const double sigma_a = std::sqrt(static_cast<double>(a.spectra.ivar(i, j)));
      const double sigma_b = std::sqrt(static_cast<double>(b.spectra.ivar(k, j)));
      double pull = std::abs(static_cast<double>(a.spectra.flux(i, j)) - b.spectra.flux(k, j)) * sigma_b;
      if (!std::isfinite(pull)) pull = std::numeric_limits<double>::infinity();
      result.pulls.push_back(pull);
      squares += pull * pull;
      double relative = sigma_a == sigma_b ? 0 : std::abs(sigma_a / sigma_b - 1);
      if (std::isnan(relative)) relative = std::numeric_limits<double>::infinity();
      result.max_sqrt_ivar = std::max(result.max_sqrt_ivar, relative);
    }
    result.max_resolution =
        std::max(result.max_resolution, ResolutionDifference(a.spectra, i, b.spectra, k, good));
  }
  std::sort(result.pulls.begin(), result.pulls.end());
  result.compared = static_cast<int64_t>(result.pulls.size());
  if (result.compared > 0) result.rms_pull = std::sqrt(squares / static_cast<double>(result.compared));
  return result;
}

absl::StatusOr<TruthDifference> CompareTruth(const Frame& frame, const Truth& truth) {
  TruthDifference result;
  std::vector<double> pulls;
  const LowPass low_pass(truth.wave, frame.grid);
  for (size_t k = 0; k < truth.fibres.size(); ++k) {
    const int i = truth.fibres[k] - frame.fibres.first;
    if (i < 0 || i >= frame.fibres.count) continue;
    ++result.fibres;
    const std::vector<double> expected =
        Resolve(frame.spectra, i, low_pass.Apply(truth.flux.Row(static_cast<int64_t>(k))));
    for (int j = 0; j < frame.grid.count; ++j) {
      int64_t* const left_out = frame.spectra.mask(i, j) != 0                  ? &result.masked
                                : !(frame.spectra.chi2pix(i, j) < kMaxChi2Pix) ? &result.bad_fit
                                : std::isnan(expected[j])                      ? &result.at_the_ends
                                                                               : nullptr;
      if (left_out != nullptr) {
        ++*left_out;
        continue;
      }
      const double sigma = std::sqrt(static_cast<double>(frame.spectra.ivar(i, j)));
      pulls.push_back((frame.spectra.flux(i, j) - expected[j]) * sigma);
    }
  }
  if (result.fibres == 0) return absl::InvalidArgumentError("the truth has none of the frame's fibres");
  result.other_fibres = frame.fibres.count - result.fibres;
  if (pulls.empty()) {
    return absl::InvalidArgumentError(
        absl::StrFormat("no bin can be compared with the truth: of %d, %d have a MASK, %d a chi2pix of %g or "
                        "more, %d are at the "
                        "ends of the grid",
                        result.left_out(), result.masked, result.bad_fit, kMaxChi2Pix, result.at_the_ends));
  }
  std::sort(pulls.begin(), pulls.end());
  result.compared = static_cast<int64_t>(pulls.size());
  const double count = static_cast<double>(pulls.size());
  double sum = 0, squares = 0;
  int64_t beyond = 0;
  for (double pull : pulls) {
    sum += pull;
    squares += pull * pull;
    beyond += std::abs(pull) > 5;
  }
  result.mean = sum / count;
  result.sigma = std::sqrt(std::max(0.0, squares / count - result.mean * result.mean));
  result.median = Quantile(pulls, 0.5);
  result.robust_sigma = 0.5 * (Quantile(pulls, 1 - kSigmaTail) - Quantile(pulls, kSigmaTail));
  result.beyond_5 = static_cast<double>(beyond) / count;
  return result;
}

}  // namespace spexd::cli
