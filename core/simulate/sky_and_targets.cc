#include "core/simulate/sky_and_targets.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <numeric>
#include <vector>

#include "absl/strings/str_format.h"
#include "core/simulate/random.h"
#include "core/simulate/truth_grid.h"

namespace spexd {
namespace {

// Densities and widths of lines at a step of kTruthStep.
constexpr double kSkyLinesPerAngstrom = 0.06;
constexpr double kSkyLineSigma = 0.6;    // Angstrom: wide enough for bins of 0.8 to follow
constexpr double kLampLineSigma = 0.15;  // Angstrom: less than spectrographs resolve
constexpr double kEmissionLinesPerAngstrom = 0.003;

// A spectrum to which light is added. Widths in Angstrom and electrons / Angstrom are for a grid with a step
// of kTruthStep.
class Canvas {
 public:
  explicit Canvas(const WavelengthGrid& grid)
      : wave_(grid.Values()), flux_(wave_.size(), 0.0), scale_(grid.step / kTruthStep) {}

  double low() const { return wave_.front(); }
  double high() const { return wave_.back(); }
  // The number of lines, given their number per Angstrom.
  int Lines(double per_angstrom) const {
    return std::max(2, static_cast<int>(std::lround(per_angstrom / scale_ * (high() - low()))));
  }
  // Adds a straight continuum from `low` at the first wavelength to `high` at the last.
  void AddContinuum(double low, double high) {
    const double first = wave_.front(), span = wave_.back() - first;
    for (size_t k = 0; k < wave_.size(); ++k) flux_[k] += low + (high - low) * (wave_[k] - first) / span;
  }
  void AddLine(double centre, double sigma, double peak) {
    ForLine(centre, sigma, [&](double profile, double& flux) { flux += peak * profile; });
  }
  void Absorb(double centre, double sigma, double depth) {
    ForLine(centre, sigma, [&](double profile, double& flux) { flux *= 1 - depth * profile; });
  }
  // The spectrum in electrons / Angstrom of the actual grid.
  std::vector<double> Finish() && {
    for (double& flux : flux_) flux /= scale_;
    return std::move(flux_);
  }

 private:
  template <typename Apply>
  void ForLine(double centre, double sigma, const Apply& apply) {
    sigma *= scale_;
    const auto first = std::lower_bound(wave_.begin(), wave_.end(), centre - 6 * sigma);
    for (auto wave = first; wave != wave_.end() && *wave <= centre + 6 * sigma; ++wave) {
      const double u = (*wave - centre) / sigma;
      apply(std::exp(-0.5 * u * u), flux_[static_cast<size_t>(wave - wave_.begin())]);
    }
  }

  std::vector<double> wave_, flux_;
  double scale_;
};

std::vector<double> MakeTarget(const WavelengthGrid& grid, TargetKind kind, Random& random) {
  Canvas target(grid);
  const double low = target.low(), high = target.high();
  if (kind == TargetKind::kStar) {
    const double level = random.LogUniform(100, 450);
    target.AddContinuum(level * random.Uniform(0.8, 1.2), level * random.Uniform(0.8, 1.2));
    for (int k = 0; k < 4; ++k) {
      target.Absorb(random.Uniform(low, high), random.Uniform(1.5, 8), random.Uniform(0.2, 0.7));
    }
  } else if (kind == TargetKind::kGalaxy) {
    const double level = random.LogUniform(10, 150);
    target.AddContinuum(level * random.Uniform(0.7, 1.3), level * random.Uniform(0.7, 1.3));
    for (int k = target.Lines(kEmissionLinesPerAngstrom); k > 0; --k) {
      target.AddLine(random.Uniform(low, high), random.Uniform(1, 4), random.LogUniform(50, 2500));
    }
  }
  return std::move(target).Finish();
}

// Makes dark spectra of all fibres.
Truth MakeDark(int fibres, const WavelengthGrid& grid) {
  Truth truth;
  truth.wave = grid.Values();
  truth.fibres.resize(fibres);
  std::iota(truth.fibres.begin(), truth.fibres.end(), 0);
  truth.flux.Assign({fibres, grid.count});
  return truth;
}

}  // namespace

TargetKind KindOf(int fibre) {
  if (fibre % 10 == 3) return TargetKind::kSky;
  return fibre % 10 == 7 ? TargetKind::kStar : TargetKind::kGalaxy;
}

std::vector<double> MakeSky(const WavelengthGrid& grid, uint64_t seed) {
  Random random(seed, 2);
  Canvas sky(grid);
  sky.AddContinuum(random.Uniform(45, 60), random.Uniform(60, 80));
  for (int k = sky.Lines(kSkyLinesPerAngstrom); k > 0; --k) {
    // Most lines are faint, and a few are very bright.
    const double rank = std::pow(random.Uniform(), 6);
    sky.AddLine(random.Uniform(sky.low(), sky.high()), kSkyLineSigma, 40 * std::exp(7 * rank));
  }
  return std::move(sky).Finish();
}

Truth MakeTruth(int fibres, const WavelengthGrid& grid, uint64_t seed) {
  Truth truth = MakeDark(fibres, grid);
  const std::vector<double> sky = MakeSky(grid, seed);
  for (int i = 0; i < fibres; ++i) {
    Random random(seed, 1000 + static_cast<uint64_t>(i));
    const double throughput = random.Uniform(0.9, 1.1);
    const std::vector<double> target = MakeTarget(grid, KindOf(i), random);
    for (int k = 0; k < grid.count; ++k)
      truth.flux(i, k) = static_cast<float>(throughput * (sky[k] + target[k]));
  }
  return truth;
}

absl::StatusOr<Truth> MakeLampTruth(int fibres, const WavelengthGrid& grid,
                                    absl::Span<const LampLine> lines) {
  const auto order = [](const LampLine& a, const LampLine& b) { return a.wave < b.wave; };
  if (std::ranges::none_of(lines, [&grid](const LampLine& line) {
        return line.wave >= grid.first && line.wave <= grid.last();
      })) {
    const auto [first, last] = std::ranges::minmax_element(lines, order);
    return absl::InvalidArgumentError(absl::StrFormat(
        "simulator: the lamps' %d lines are from %.6g to %.6g Angstrom, none of them from %.6g to %.6g",
        lines.size(), first->wave, last->wave, grid.first, grid.last()));
  }
  Truth truth = MakeDark(fibres, grid);
  Canvas lamps(grid);
  for (const LampLine& line : lines) {
    lamps.AddLine(line.wave, kLampLineSigma,
                  line.electrons / (kLampLineSigma * std::sqrt(2 * std::numbers::pi)));
  }
  const std::vector<double> flux = std::move(lamps).Finish();
  for (int i = 0; i < fibres; ++i) std::copy(flux.begin(), flux.end(), truth.flux.Row(i).begin());
  return truth;
}

}  // namespace spexd
