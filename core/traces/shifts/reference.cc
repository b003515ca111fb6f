#include "core/traces/shifts/reference.h"

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "core/base/median.h"

namespace spexd {
namespace {

constexpr double kSampleStep = 0.2;  // Angstrom between gathered samples
constexpr int kContinuumSamples = 121;
constexpr double kFaintestLine = 1e-3;  // part of the strongest line

// The first bytes of a reference's line, for messages.
std::string Excerpt(absl::string_view line) {
  constexpr size_t kLongest = 40;
  std::string text;
  for (const char c : line.substr(0, kLongest)) text += absl::ascii_isprint(c) ? c : '?';
  return text;
}

}  // namespace

absl::StatusOr<ReferenceSpectrum> ParseReferenceSpectrum(const std::string& name, absl::string_view text) {
  ReferenceSpectrum spectrum;
  int64_t number = 0;
  for (absl::string_view line : absl::StrSplit(text, '\n')) {
    ++number;
    line = absl::StripAsciiWhitespace(line.substr(0, line.find('#')));
    if (line.empty()) continue;
    const auto wrong = [&](const char* what) {
      return absl::InvalidArgumentError(
          absl::StrFormat("%s, line %d (\"%s\"): %s", name, number, Excerpt(line), what));
    };
    std::vector<absl::string_view> words;
    for (absl::string_view word : absl::StrSplit(line, absl::ByAnyChar(" \t,"), absl::SkipEmpty())) {
      words.push_back(word);
      if (words.size() == 2) break;
    }
    double wave = 0, flux = 0;
    if (words.size() < 2 || !absl::SimpleAtod(words[0], &wave) || !absl::SimpleAtod(words[1], &flux) ||
        !std::isfinite(wave) || !std::isfinite(flux)) {
      return wrong("must begin with two finite numbers, the wavelength in Angstrom and the flux");
    }
    if (!spectrum.wave.empty() && !(wave > spectrum.wave.back())) {
      return wrong("wavelengths must increase from line to line");
    }
    if (spectrum.wave.size() == kMaxReferenceSamples) {
      return wrong("a reference may have at most 10000000 samples");
    }
    spectrum.wave.push_back(wave);
    spectrum.flux.push_back(std::max(flux, 0.0));
  }
  if (spectrum.wave.size() < 2) {
    return absl::InvalidArgumentError(
        absl::StrFormat("%s: has %d samples, a reference needs at least 2", name, spectrum.wave.size()));
  }
  return spectrum;
}

int ReferenceLight::MaxSamples(double wave_min, double wave_max) {
  return static_cast<int>((wave_max - wave_min) / kSampleStep) + 2;
}

ReferenceLight::ReferenceLight(const ReferenceSpectrum& spectrum, double wave_min, double wave_max) {
  const std::vector<double>& wave = spectrum.wave;
  const size_t count = wave.size();
  if (count < 2) return;
  std::vector<double> step(count);
  for (size_t k = 0; k < count; ++k) {
    const size_t low = k == 0 ? 0 : k - 1, high = std::min(k + 1, count - 1);
    step[k] = (wave[high] - wave[low]) / static_cast<double>(high - low);
  }
  std::vector<double> sorted = step;
  const double longest = 2 * Median(sorted);  // longer steps span samples without light
  std::vector<double> total;
  int64_t first = 0;
  for (size_t k = 0; k < count; ++k) {
    if (!(wave[k] > wave_min && wave[k] < wave_max && spectrum.flux[k] > 0)) continue;
    const double position = wave[k] / kSampleStep, left = std::floor(position);
    if (total.empty()) first = static_cast<int64_t>(left);
    const size_t index = static_cast<size_t>(static_cast<int64_t>(left) - first);
    if (total.size() < index + 2) total.resize(index + 2);
    const double light = spectrum.flux[k] * std::min(step[k], longest);
    total[index] += light * (1 - (position - left));
    total[index + 1] += light * (position - left);
  }
  for (size_t k = 0; k < total.size(); ++k) {
    if (!(total[k] > 0)) continue;
    wave_.push_back(static_cast<double>(first + static_cast<int64_t>(k)) * kSampleStep);
    light_.push_back(total[k]);
  }
}

std::vector<double> ReferenceLight::Smooth(absl::Span<const double> wave) const {
  std::vector<double> smooth(wave.size());
  size_t first = 0;
  for (size_t j = 0; j < wave.size(); ++j) {
    while (first < wave_.size() && wave_[first] < wave[j] - kSmoothReach * kSmoothWidth) ++first;
    for (size_t k = first; k < wave_.size() && wave_[k] < wave[j] + kSmoothReach * kSmoothWidth; ++k) {
      const double x = (wave[j] - wave_[k]) / kSmoothWidth;
      smooth[j] += light_[k] * std::exp(-0.5 * x * x);
    }
  }
  return smooth;
}

std::vector<double> ReferenceLight::Lines(double wave_min, double wave_max,
                                          const TraceShiftOptions& options) const {
  std::vector<double> lines;
  const int64_t count = static_cast<int64_t>(std::ceil((wave_max - wave_min) / kSampleStep));
  if (count < 3 || wave_.empty()) return lines;
  std::vector<double> grid(static_cast<size_t>(count));
  for (int64_t k = 0; k < count; ++k) grid[k] = wave_min + static_cast<double>(k) * kSampleStep;
  std::vector<double> height = Smooth(grid);
  const std::vector<double> continuum = RunningMedian(height, kContinuumSamples);
  for (size_t k = 0; k < height.size(); ++k) height[k] -= continuum[k];
  std::vector<size_t> peaks;
  for (size_t k = 1; k + 1 < height.size(); ++k) {
    if (height[k] > height[k - 1] && height[k] >= height[k + 1]) peaks.push_back(k);
  }
  std::stable_sort(peaks.begin(), peaks.end(), [&](size_t a, size_t b) { return height[a] > height[b]; });
  for (const size_t peak : peaks) {
    if (height[peak] < kFaintestLine * height[peaks.front()] || !(height[peak] > 0) ||
        static_cast<int>(lines.size()) == options.max_lines) {
      break;
    }
    const auto near = [&](double line) { return std::abs(line - grid[peak]) < options.window; };
    if (std::none_of(lines.begin(), lines.end(), near)) lines.push_back(grid[peak]);
  }
  return lines;
}

std::vector<double> RunningMedian(absl::Span<const double> values, int width) {
  const int64_t count = static_cast<int64_t>(values.size()), half = width / 2;
  std::vector<double> medians(values.size());
  if (count == 0) return medians;
  const auto at = [&](int64_t k) { return values[std::clamp<int64_t>(k, 0, count - 1)]; };
  std::vector<double> sorted;  // the window's values
  for (int64_t k = -half; k <= half; ++k) sorted.push_back(at(k));
  std::sort(sorted.begin(), sorted.end());
  for (int64_t k = 0; k < count; ++k) {
    medians[k] = sorted[half];
    sorted.erase(std::lower_bound(sorted.begin(), sorted.end(), at(k - half)));
    const double next = at(k + half + 1);
    sorted.insert(std::upper_bound(sorted.begin(), sorted.end(), next), next);
  }
  return medians;
}

}  // namespace spexd
