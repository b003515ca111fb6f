#include "tests/support/scenes/scene.h"

#include <algorithm>
#include <cmath>
#include <random>

#include "core/model/reference_spot.h"
#include "tests/support/scenes/sampled_psf.h"

namespace spexd::testing {
namespace {

class SceneMaker {
 public:
  explicit SceneMaker(const SceneOptions& options) : options_(options) {}

  // Returns a series with the given mean that varies by about `variation` along wavelength and fibres.
  LegendreTable Series(double mean, double variation) {
    LegendreTable table;
    table.wave_min = kSceneWave;
    table.wave_max = kSceneWave + options_.dispersion * options_.rows;
    table.coeff.Assign({options_.fibres, 3});
    const double phase = 2.0 * (next_++);
    for (int i = 0; i < options_.fibres; ++i) {
      table.coeff(i, 0) = mean + variation * std::sin(0.3 * i + phase);
      table.coeff(i, 1) = 0.5 * variation * std::cos(0.2 * i + phase);
      table.coeff(i, 2) = 0.2 * variation * std::cos(0.1 * i + 2 * phase);
    }
    return table;
  }

 private:
  const SceneOptions& options_;
  int next_ = 0;
};

GaussHermiteSpots MakeGaussHermite(const SceneOptions& options, SceneMaker& maker) {
  GaussHermiteSpots spots;
  spots.stamp = {CentredAxis(options.half_columns), CentredAxis(5)};
  GaussHermiteCore& core = spots.core();
  core.max_degree_x = core.max_degree_y = 3;
  core.sigma_x = maker.Series(1.05 * options.widen, 0.05);
  core.sigma_y = maker.Series(0.87, 0.03);
  core.terms.push_back({0, 0, maker.Series(1, 0.01)});
  core.terms.push_back({2, 0, maker.Series(0.03, 0.01)});
  core.terms.push_back({0, 2, maker.Series(-0.02, 0.01)});
  core.terms.push_back({1, 1, maker.Series(0.01, 0.01)});
  core.terms.push_back({3, 1, maker.Series(0.003, 0.002)});
  if (options.tail || options.spots == SceneSpots::kTwoCores) {
    spots.tail_amplitude = maker.Series(2e-3, 2e-4);
    spots.tail_core = maker.Series(1, 0);
    spots.tail_index = maker.Series(2, 0);
    spots.tail_scale_x = maker.Series(1, 0);
    spots.tail_scale_y = maker.Series(1.1, 0);
  }
  if (options.spots == SceneSpots::kTwoCores) {
    spots.cutoff = maker.Series(3.3, 0.1);
    GaussHermiteCore& wide = spots.cores.emplace_back();
    wide.max_degree_x = 2;
    wide.max_degree_y = 1;
    wide.sigma_x = maker.Series(1.9 * options.widen, 0.1);
    wide.sigma_y = maker.Series(1.6, 0.05);
    wide.terms.push_back({0, 0, maker.Series(0.15, 0.01)});
    wide.terms.push_back({2, 1, maker.Series(0.01, 0.003)});
  }
  return spots;
}

SpotModel MakeSpots(const SceneOptions& options, SceneMaker& maker, const Psf& psf) {
  switch (options.spots) {
    case SceneSpots::kImageGrid:
      return MakeImageGrid(GridImages(), psf);
    case SceneSpots::kOneImage:
      return MakeShiftedImage(OneImage(), psf);
    case SceneSpots::kPolynomials:
      return MakeImagePolynomials(PolynomialImages(), psf);
    default:
      return MakeGaussHermite(options, maker);
  }
}

}  // namespace

std::shared_ptr<Psf> MakeScenePsf(const SceneOptions& options) {
  auto psf = std::make_shared<Psf>();
  SceneMaker maker(options);
  const int gaps = (options.fibres - 1) / options.bundle_size;
  psf->rows = options.rows;
  psf->columns = static_cast<int>(options.spacing * (options.fibres + 2 * gaps) + 20);
  psf->fibres = options.fibres;
  psf->traces.x = maker.Series(0, 0.3);
  psf->traces.y = maker.Series(0, 0.2);
  for (int i = 0; i < options.fibres; ++i) {
    psf->traces.x.coeff(i, 0) += 10 + options.spacing * (i + 2 * (i / options.bundle_size));
    psf->traces.y.coeff(i, 0) += 0.5 * options.rows;
    psf->traces.y.coeff(i, 1) += 0.5 * options.rows;
  }
  psf->wave_min = psf->traces.x.wave_min;
  psf->wave_max = psf->traces.x.wave_max;
  psf->spots = MakeSpots(options, maker, *psf);
  return psf;
}

std::shared_ptr<Image> MakeSceneImage(const Psf& psf, const SceneOptions& options) {
  std::mt19937_64 random(options.seed);
  Array<double, 2> model({psf.rows, psf.columns});
  const double step = 0.3;
  Spot spot;
  for (int i = 0; i < psf.fibres; ++i) {
    for (double wave = psf.wave_min - 6; wave < psf.wave_max + 6; wave += step) {
      const double line = std::exp(-0.5 * std::pow((wave - psf.wave_min - 18 - i) / 0.9, 2));
      const double flux = (120 + 30 * std::sin(0.2 * wave + i) + 2500 * line) * step;
      EvaluateSpot(psf, i, wave, &spot);
      for (int y = 0; y < psf.spot_rows(); ++y) {
        for (int x = 0; x < psf.spot_columns(); ++x) {
          const int row = spot.first_row + y, column = spot.first_column + x;
          if (row < 0 || row >= psf.rows || column < 0 || column >= psf.columns) continue;
          model(row, column) += flux * spot.values[y * psf.spot_columns() + x];
        }
      }
    }
  }
  auto image = std::make_shared<Image>();
  image->pixels.Assign({psf.rows, psf.columns});
  image->ivar.Assign({psf.rows, psf.columns});
  std::normal_distribution<double> normal;
  for (int64_t k = 0; k < model.size(); ++k) {
    const double variance = std::max(model.flat()[k], 0.0) + 2.9 * 2.9;
    image->pixels.flat()[k] = static_cast<float>(model.flat()[k] + std::sqrt(variance) * normal(random));
    image->ivar.flat()[k] = static_cast<float>(1 / variance);
  }
  return image;
}

void MaskPixels(int first_row, int rows, int first_column, int columns, Image* image) {
  for (int row = std::max(first_row, 0); row < std::min(first_row + rows, image->rows()); ++row) {
    for (int column = std::max(first_column, 0); column < std::min(first_column + columns, image->columns());
         ++column) {
      image->pixels(row, column) = image->ivar(row, column) = 0;
    }
  }
}

}  // namespace spexd::testing
