#include "tests/analysis/made_up_frame.h"

#include <cmath>

#include "core/analysis/resolution_matrix.h"

namespace spexd::testing {

Frame DarkFrame(int fibres, double variance) {
  Frame frame;
  frame.grid = {kFirstWave, kWaveStep, kFrameBins};
  frame.fibres = {0, fibres};
  Spectra& spectra = frame.spectra;
  spectra.flux.Assign({fibres, kFrameBins});
  spectra.ivar.Assign({fibres, kFrameBins}, static_cast<float>(1 / variance));
  spectra.mask.Assign({fibres, kFrameBins});
  spectra.chi2pix.Assign({fibres, kFrameBins}, 1);
  // Elements outside of the matrix, which nobody may read, get a wrong value.
  spectra.resolution.Assign({fibres, kResolutionDiagonals, kFrameBins}, 1e9f);
  for (int i = 0; i < fibres; ++i) {
    const double sigma = 0.85 + 0.05 * (i % 5);
    double sum = 0;
    for (int d = -kResolutionHalfWidth; d <= kResolutionHalfWidth; ++d)
      sum += std::exp(-0.5 * d * d / (sigma * sigma));
    for (int k = 0; k < kResolutionDiagonals; ++k) {
      const Diagonal diagonal = ResolutionMatrix::DiagonalAt(k, kFrameBins);
      const double d = k - kResolutionHalfWidth;
      for (int64_t j = diagonal.first; j < diagonal.end; ++j) {
        spectra.resolution(i, k, j) = static_cast<float>(std::exp(-0.5 * d * d / (sigma * sigma)) / sum);
      }
    }
  }
  return frame;
}

std::vector<double> Seen(const Frame& frame, int fibre, const std::vector<double>& light) {
  std::vector<double> seen(light.size());
  ResolutionMatrix(frame.spectra.resolution, fibre).Multiply(light.data(), seen.data());
  return seen;
}

void AddLight(const std::vector<double>& light, int fibre, Frame* frame) {
  const std::vector<double> seen = Seen(*frame, fibre, light);
  for (size_t j = 0; j < seen.size(); ++j) frame->spectra.flux(fibre, j) += static_cast<float>(seen[j]);
}

void AddNoise(std::mt19937* random, Frame* frame) {
  std::normal_distribution<double> normal;
  Spectra& spectra = frame->spectra;
  for (int64_t k = 0; k < spectra.flux.size(); ++k) {
    spectra.flux.flat()[k] += static_cast<float>(normal(*random) / std::sqrt(spectra.ivar.flat()[k]));
  }
}

std::vector<double> SkyLight() {
  std::vector<double> light(kFrameBins, 20);
  for (const auto& [bin, flux] : {std::pair{60, 900.0}, {140, 2500.0}, {150, 700.0}, {290, 1500.0}}) {
    for (int j = bin - 6; j <= bin + 6; ++j) light[j] += flux * std::exp(-0.5 * (j - bin) * (j - bin) / 1.2);
  }
  return light;
}

}  // namespace spexd::testing
