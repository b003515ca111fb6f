#include "tests/analysis/made_up_stars.h"

#include <cmath>

#include "core/analysis/velocity/rotation.h"
#include "tests/analysis/made_up_frame.h"

namespace spexd::testing {
namespace {

const double kLibraryFirst = std::log(5950.0);
constexpr int kSamples = 2600;

// Returns the light of a star with lines of sigma 40 km/s and the given depth.
double Star(double log_wave, double depth) {
  double light = 1 + 0.1 * std::sin(3 * log_wave);
  for (int k = 0; k < 25; ++k) {
    const double x = (log_wave - std::log(5970.0 + 13.3 * k + 3 * (k % 4))) / (40 / kLightSpeed);
    light *= 1 - depth * (0.3 + 0.1 * (k % 3)) * std::exp(-0.5 * x * x);
  }
  return light;
}

}  // namespace

StarTemplates::StarTemplates() : nodes{{0.4}, {0.8}, {1.2}}, flux({3, kSamples}) {
  for (size_t t = 0; t < nodes.size(); ++t) {
    for (int k = 0; k < kSamples; ++k) {
      flux(t, k) = static_cast<float>(Star(kLibraryFirst + k * kLibraryStep, nodes[t][0]));
    }
  }
}

absl::StatusOr<TemplateLibrary> StarTemplates::Make(double step) const {
  return MakeTemplateLibrary(kLibraryFirst, step, {"DEPTH"}, nodes, flux);
}

std::vector<double> StarLight(double velocity, double depth, double scale, double vsini) {
  constexpr int kNodes = 200;
  std::vector<double> light(kFrameBins);
  for (int j = 0; j < kFrameBins; ++j) {
    const double beta = velocity / kLightSpeed,
                 log_wave = std::log(kFirstWave + j * kWaveStep) + 0.5 * std::log((1 - beta) / (1 + beta));
    double sum = 0, total = 0;
    for (int q = 1; q <= (vsini > 0 ? kNodes : 1); ++q) {
      const RotationNode node = RotationNodeOf(q, vsini > 0 ? kNodes : 1, vsini / kLightSpeed);
      sum += node.weight * Star(log_wave + node.at, depth);
      total += node.weight;
    }
    light[j] = scale * (1 + 0.2 * j / kFrameBins) * sum / total;
  }
  return light;
}

}  // namespace spexd::testing
