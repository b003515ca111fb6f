#include "core/simulate/detector.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numbers>

#include "core/simulate/random.h"

namespace spexd {
namespace {

// Bits of ccdmask.
constexpr int32_t kDead = 1 << 2;
constexpr int32_t kSaturated = 1 << 3;
constexpr int32_t kCosmic = 1 << 4;

constexpr double kGaussianFrom = 30;  // electrons above which Poisson noise is taken as normal
constexpr float kFullWell = 65000;    // electrons
constexpr int kHoleRows = 60, kHoleColumns = 18;

double Noisy(double expected, double read_noise, Random& random) {
  if (expected > kGaussianFrom) {
    return expected + std::sqrt(expected + read_noise * read_noise) * random.Normal();
  }
  return random.Poisson(expected) + read_noise * random.Normal();
}

void AddCosmicRay(Random& random, PreprocFile& preproc) {
  const double length = random.Uniform(1, 12), angle = random.Uniform(0, 2 * std::numbers::pi);
  const double row = random.Uniform(0, static_cast<double>(preproc.pixels.shape(0)));
  const double column = random.Uniform(0, static_cast<double>(preproc.pixels.shape(1)));
  const double electrons = random.LogUniform(200, 20000);
  for (double step = 0; step < length; ++step) {
    const double r = std::floor(row + step * std::sin(angle)),
                 c = std::floor(column + step * std::cos(angle));
    if (r < 0 || c < 0 || r >= preproc.pixels.shape(0) || c >= preproc.pixels.shape(1)) continue;
    preproc.pixels(r, c) += static_cast<float>(electrons);
    preproc.mask(r, c) |= kCosmic;
  }
}

// Adds holes. The first one is over a fibre of the middle bundle, somewhat above the middle of the CCD.
void AddHoles(const Psf& psf, int count, Random random, PreprocFile& preproc) {
  const int rows = std::min(kHoleRows, psf.rows / 3), columns = std::min(kHoleColumns, psf.columns / 2);
  int first_row = std::min(psf.rows - rows, psf.rows * 11 / 20);
  const LegendreTable& x = psf.traces.x;
  const double trace = Evaluate(x, psf.fibres / 2, 0.5 * (x.wave_min + x.wave_max));
  int first_column =
      static_cast<int>(std::clamp(std::trunc(trace) - columns / 2, 0.0, 1.0 * (psf.columns - columns)));
  for (int k = 0; k < count; ++k) {
    for (int row = first_row; row < first_row + rows; ++row) {
      for (int column = first_column; column < first_column + columns; ++column) {
        preproc.pixels(row, column) = kFullWell;
        preproc.mask(row, column) |= kSaturated;
      }
    }
    first_row = random.Index(psf.rows - rows + 1);
    first_column = random.Index(psf.columns - columns + 1);
  }
}

}  // namespace

void Expose(const SimulatorOptions& options, const Psf& psf, const Array<float, 2>& expected,
            PreprocFile& preproc) {
  const double variance = options.read_noise * options.read_noise;
  // Each exposure has its own streams.
  const uint64_t streams = static_cast<uint64_t>(options.exposure) << 32;
  preproc.pixels = expected;
  preproc.ivar.Assign(expected.shape());
  preproc.mask.Assign(expected.shape());
  preproc.readnoise.Assign(expected.shape(), static_cast<float>(options.read_noise));
  for (int row = 0; row < psf.rows; ++row) {
    Random random(options.seed, streams + 1000000 + static_cast<uint64_t>(row));
    for (int column = 0; column < psf.columns; ++column) {
      const double electrons = std::max(0.0f, expected(row, column));
      const double ivar = 1 / (electrons + variance);
      preproc.ivar(row, column) = static_cast<float>(kIvarStep * std::max(1.0, std::round(ivar / kIvarStep)));
      if (options.noise) {
        preproc.pixels(row, column) = static_cast<float>(Noisy(electrons, options.read_noise, random));
      }
    }
  }

  Random random(options.seed, streams + 3);
  for (int k = 0; k < options.cosmic_rays; ++k) AddCosmicRay(random, preproc);
  for (int k = 0; k < options.dead_columns; ++k) {
    const int column = random.Index(psf.columns);
    for (int row = 0; row < psf.rows; ++row) {
      preproc.pixels(row, column) = 0;
      preproc.mask(row, column) |= kDead;
    }
  }
  AddHoles(psf, options.holes, Random(options.seed, streams + 7), preproc);
}

}  // namespace spexd
