#include "core/simulate/sky_and_targets.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <vector>

#include "core/simulate/random.h"

namespace spexd {
namespace {

constexpr double kSkyLinesPerAngstrom = 0.06;
constexpr double kSkyLineSigma = 0.6;    // Angstrom: wide enough for bins of 0.8 to follow
constexpr double kLampLineSigma = 0.15;  // Angstrom: less than spectrographs resolve
constexpr double kEmissionLinesPerAngstrom = 0.003;

class Canvas {
 public:
  explicit Canvas(const std::vector<double>& wave) : wave_(wave), flux_(wave.size(), 0.0) {}

  // Straight from `low` at the first wavelength to `high` at the last.
  void AddContinuum(double low, double high) {
    const double span = wave_.back() - wave_.front();
    for (size_t k = 0; k < wave_.size(); ++k)
      flux_[k] += low + (high - low) * (wave_[k] - wave_.front()) / span;
  }
  void AddLine(double centre, double sigma, double peak) {
    ForLine(centre, sigma, [&](double profile, double& flux) { flux += peak * profile; });
  }
  void Absorb(double centre, double sigma, double depth) {
    ForLine(centre, sigma, [&](double profile, double& flux) { flux *= 1 - depth * profile; });
  }
  const std::vector<double>& flux() const { return flux_; }

 private:
  template <typename Apply>
  void ForLine(double centre, double sigma, const Apply& apply) {
    const auto first = std::lower_bound(wave_.begin(), wave_.end(), centre - 6 * sigma);
    for (auto wave = first; wave != wave_.end() && *wave <= centre + 6 * sigma; ++wave) {
      const double u = (*wave - centre) / sigma;
      apply(std::exp(-0.5 * u * u), flux_[static_cast<size_t>(wave - wave_.begin())]);
    }
  }

  const std::vector<double>& wave_;
  std::vector<double> flux_;
};

std::vector<double> MakeTarget(const std::vector<double>& wave, TargetKind kind, Random& random) {
  Canvas target(wave);
  const double low = wave.front(), high = wave.back();
  if (kind == TargetKind::kStar) {
    const double level = random.LogUniform(100, 450);
    target.AddContinuum(level * random.Uniform(0.8, 1.2), level * random.Uniform(0.8, 1.2));
    for (int k = 0; k < 4; ++k) {
      target.Absorb(random.Uniform(low, high), random.Uniform(1.5, 8), random.Uniform(0.2, 0.7));
    }
  } else if (kind == TargetKind::kGalaxy) {
    const double level = random.LogUniform(10, 150);
    target.AddContinuum(level * random.Uniform(0.7, 1.3), level * random.Uniform(0.7, 1.3));
    const int lines = std::max(2, static_cast<int>(std::lround(kEmissionLinesPerAngstrom * (high - low))));
    for (int k = 0; k < lines; ++k) {
      target.AddLine(random.Uniform(low, high), random.Uniform(1, 4), random.LogUniform(50, 2500));
    }
  }
  return target.flux();
}

}  // namespace

TargetKind KindOf(int fibre) {
  if (fibre % 10 == 3) return TargetKind::kSky;
  return fibre % 10 == 7 ? TargetKind::kStar : TargetKind::kGalaxy;
}

std::vector<double> MakeSky(const std::vector<double>& wave, uint64_t seed) {
  Random random(seed, 2);
  Canvas sky(wave);
  sky.AddContinuum(random.Uniform(45, 60), random.Uniform(60, 80));
  const double low = wave.front(), high = wave.back();
  const int lines = std::max(2, static_cast<int>(std::lround(kSkyLinesPerAngstrom * (high - low))));
  for (int k = 0; k < lines; ++k) {
    // Most lines are faint, a few are very bright.
    const double rank = std::pow(random.Uniform(), 6);
    sky.AddLine(random.Uniform(low, high), kSkyLineSigma, 40 * std::exp(7 * rank));
  }
  return sky.flux();
}

std::vector<double> TruthWavelengths(double wave_min, double wave_max) {
  std::vector<double> wave(static_cast<size_t>(std::ceil((wave_max - wave_min) / kTruthStep)) + 1);
  for (size_t k = 0; k < wave.size(); ++k) wave[k] = wave_min + static_cast<double>(k) * kTruthStep;
  return wave;
}

Truth MakeTruth(int fibres, double wave_min, double wave_max, uint64_t seed) {
  Truth truth;
  truth.wave = TruthWavelengths(wave_min, wave_max);
  const int bins = static_cast<int>(truth.wave.size());
  truth.fibres.resize(fibres);
  truth.flux.Assign({fibres, bins});

  const std::vector<double> sky = MakeSky(truth.wave, seed);
  for (int i = 0; i < fibres; ++i) {
    truth.fibres[i] = i;
    Random random(seed, 1000 + static_cast<uint64_t>(i));
    const double throughput = random.Uniform(0.9, 1.1);
    const std::vector<double> target = MakeTarget(truth.wave, KindOf(i), random);
    for (int k = 0; k < bins; ++k) truth.flux(i, k) = static_cast<float>(throughput * (sky[k] + target[k]));
  }
  return truth;
}

Truth MakeLampTruth(int fibres, double wave_min, double wave_max, absl::Span<const LampLine> lines) {
  Truth truth;
  truth.wave = TruthWavelengths(wave_min, wave_max);
  Canvas lamps(truth.wave);
  for (const LampLine& line : lines) {
    lamps.AddLine(line.wave, kLampLineSigma,
                  line.electrons / (kLampLineSigma * std::sqrt(2 * std::numbers::pi)));
  }
  truth.fibres.resize(fibres);
  truth.flux.Assign({fibres, static_cast<int64_t>(truth.wave.size())});
  for (int i = 0; i < fibres; ++i) {
    truth.fibres[i] = i;
    std::copy(lamps.flux().begin(), lamps.flux().end(), truth.flux.Row(i).begin());
  }
  return truth;
}

}  // namespace spexd
