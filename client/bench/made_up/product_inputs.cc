#include "client/bench/made_up/product_inputs.h"

#include <algorithm>
#include <cmath>
#include <random>
#include <utility>

#include "core/analysis/resolution_matrix.h"
#include "core/analysis/velocity_units.h"
#include "core/base/status_macros.h"

namespace spexd::bench {
namespace {

constexpr int kSkyEvery = 12;
constexpr double kTemplateStep = 7 / kLightSpeed;  // step of ln wavelength

// Stars with many lines, by temperature, gravity and abundance in units of the library's grid. The lines come
// from a fixed seed. Parameters of the frame's stars are between those of the templates.
class MadeUpStars {
 public:
  MadeUpStars(double first, double last) {
    std::mt19937 random(7);
    std::uniform_real_distribution<double> position(first, last), depth(0.03, 0.25);
    for (int k = 0; k < 150; ++k) lines_.push_back({position(random), depth(random)});
  }
  // Returns the flux at ascending positions of ln wavelength.
  std::vector<double> Flux(const std::vector<double>& log_wave, const std::vector<double>& parameters) const {
    std::vector<double> flux(log_wave.size(), 1);
    for (size_t k = 0; k < lines_.size(); ++k) {
      const double sigma = (25 + 3 * parameters[1]) / kLightSpeed;
      const double depth = lines_[k].second * std::exp(0.4 * (parameters[k % 3] - 1));
      const auto begin = std::lower_bound(log_wave.begin(), log_wave.end(), lines_[k].first - 6 * sigma);
      for (size_t j = begin - log_wave.begin(); j < log_wave.size(); ++j) {
        const double x = (log_wave[j] - lines_[k].first) / sigma;
        if (x > 6) break;
        flux[j] *= 1 - depth * std::exp(-0.5 * x * x);
      }
    }
    return flux;
  }

 private:
  std::vector<std::pair<double, double>> lines_;  // ln wavelength, depth
};

absl::StatusOr<TemplateLibrary> MakeUpTemplates(const MadeUpStars& stars, double first, double last) {
  std::vector<double> log_wave;
  for (double at = first; at < last; at += kTemplateStep) log_wave.push_back(at);
  std::vector<std::vector<double>> nodes;
  for (int t = 0; t < 5; ++t) {
    for (int g = 0; g < 3; ++g) {
      for (int z = 0; z < 3; ++z) nodes.push_back({double(t), double(g), double(z)});
    }
  }
  Array<float, 2> flux({static_cast<int64_t>(nodes.size()), static_cast<int64_t>(log_wave.size())});
  for (size_t k = 0; k < nodes.size(); ++k) {
    const std::vector<double> row = stars.Flux(log_wave, nodes[k]);
    std::copy(row.begin(), row.end(), flux.Row(static_cast<int64_t>(k)).begin());
  }
  return MakeTemplateLibrary(first, kTemplateStep, {"TEFF", "LOGG", "FEH"}, nodes, flux);
}

void SetResolution(Frame* frame) {
  Array<float, 3>& resolution = frame->spectra.resolution;
  resolution.Assign({frame->fibres.count, kResolutionDiagonals, frame->grid.count});
  for (int i = 0; i < frame->fibres.count; ++i) {
    const double sigma = 0.76 + 0.01 * (i % 5);  // bins
    for (int k = 0; k < kResolutionDiagonals; ++k) {
      const double d = k - kResolutionHalfWidth;
      const auto row = resolution.Row(i, k);
      std::fill(row.begin(), row.end(), std::exp(-0.5 * d * d / (sigma * sigma)) / (sigma * 2.5066));
    }
  }
}

// Makes a frame of sky with bright lines, with stars in all fibres except the sky fibres.
Frame MakeUpFrame(int fibres, const WavelengthGrid& grid, const MadeUpStars& stars) {
  Frame frame;
  frame.grid = grid;
  frame.fibres = {0, fibres};
  Spectra& spectra = frame.spectra;
  spectra.flux.Assign({fibres, grid.count});
  spectra.ivar.Assign({fibres, grid.count});
  spectra.mask.Assign({fibres, grid.count});
  SetResolution(&frame);
  std::mt19937 random(11);
  std::normal_distribution<double> normal;
  std::uniform_real_distribution<double> velocity(-500, 500), inside(0.1, 1.9);
  const std::vector<double> wave = grid.Values();
  std::vector<double> sky(wave.size(), 40), seen(wave.size()), at(wave.size());
  for (size_t j = 10; j < sky.size(); j += 40) sky[j] += 2000.0 / static_cast<double>(1 + j % 7);
  for (int i = 0; i < fibres; ++i) {
    const double shift = velocity(random) / kLightSpeed;
    // Faint stars have several minima that the fit must try. The sky between its lines is 40.
    const double brightness = i % kSkyEvery == 0 ? 0 : 5 * std::pow(40, 0.1 * (i % 11));
    for (size_t j = 0; j < wave.size(); ++j) at[j] = std::log(wave[j]) - shift;
    std::vector<double> light = stars.Flux(at, {2 * inside(random), inside(random), inside(random)});
    for (size_t j = 0; j < sky.size(); ++j) light[j] = sky[j] + brightness * light[j];
    ResolutionMatrix(spectra.resolution, i).Multiply(light.data(), seen.data());
    for (size_t j = 0; j < seen.size(); ++j) {
      const double variance = seen[j] + 10;
      spectra.flux(i, j) = static_cast<float>(seen[j] + std::sqrt(variance) * normal(random));
      spectra.ivar(i, j) = static_cast<float>(1 / variance);
    }
  }
  return frame;
}

}  // namespace

absl::StatusOr<ProductInputs> MakeUpProductInputs(int fibres, const WavelengthGrid& grid) {
  const double beyond = 0.004;  // margin for the scan's velocities and the filter's reach
  const double first = std::log(grid.first - 20) - beyond, last = std::log(grid.last() + 20) + beyond;
  const MadeUpStars stars(first, last);
  ProductInputs made;
  made.frame = std::make_unique<const Frame>(MakeUpFrame(fibres, grid, stars));
  SPEXD_ASSIGN_OR_RETURN(made.library, MakeUpTemplates(stars, first, last));
  SPEXD_ASSIGN_OR_RETURN(made.spectra, MakeUsable(*made.frame));
  for (int i = 0; i < fibres; ++i) (i % kSkyEvery == 0 ? made.sky_fibres : made.targets).push_back(i);
  if (made.targets.empty()) return absl::InvalidArgumentError("products: need 2 fibres or more");
  return made;
}

}  // namespace spexd::bench
