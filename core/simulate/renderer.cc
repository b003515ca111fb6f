#include "core/simulate/renderer.h"

#include <algorithm>
#include <atomic>
#include <system_error>
#include <thread>
#include <vector>

#include "core/model/fibre_range.h"
#include "core/simulate/instrument.h"
#include "core/simulate/spot_maker.h"

namespace spexd {
namespace {

// The light of one bundle: all rows, and the columns that it reaches.
struct BundleLight {
  int first_column = 0;
  Array<double, 2> pixels;  // [row, column - first_column]
};

// Columns that the bundle's spots may reach, from its traces at the ends and middle of the spectra and a
// margin for curvature.
BundleLight MakeWindow(const Psf& psf, const Truth& truth, FibreRange fibres) {
  constexpr int kMargin = 8;
  double low = psf.columns, high = -1;
  for (int fibre = fibres.first; fibre < fibres.end(); ++fibre) {
    for (size_t k = 0; k <= 8; ++k) {
      const double x = Evaluate(psf.traces.x, fibre, truth.wave[k * (truth.wave.size() - 1) / 8]);
      low = std::min(low, x);
      high = std::max(high, x);
    }
  }
  const double limit = psf.columns;
  const int first = static_cast<int>(std::clamp(low - psf.stamp().x.middle - kMargin, 0.0, limit));
  const int end = static_cast<int>(std::clamp(high + psf.stamp().x.middle + kMargin, 0.0, limit));
  BundleLight light;
  light.first_column = first;
  light.pixels.Assign({psf.rows, std::max(0, end - first)});
  return light;
}

void AddSpot(const Psf& psf, const Spot& spot, double electrons, BundleLight& light) {
  const int nx = psf.spot_columns(), ny = psf.spot_rows();
  const int left = spot.first_column - light.first_column;
  const int begin = std::max(0, -left), end = std::min(nx, static_cast<int>(light.pixels.shape(1)) - left);
  for (int row = std::max(0, -spot.first_row); row < std::min(ny, psf.rows - spot.first_row); ++row) {
    for (int column = begin; column < end; ++column) {
      light.pixels(spot.first_row + row, left + column) += electrons * spot.values[row * nx + column];
    }
  }
}

BundleLight RenderBundle(const Psf& psf, const Truth& truth, FibreRange fibres) {
  BundleLight light = MakeWindow(psf, truth, fibres);
  SpotMaker maker(psf);
  Spot spot;
  const double step = (truth.wave.back() - truth.wave.front()) / static_cast<double>(truth.wave.size() - 1);
  for (int fibre = fibres.first; fibre < fibres.end(); ++fibre) {
    for (size_t k = 0; k < truth.wave.size(); ++k) {
      maker.Make(fibre, truth.wave[k], &spot);
      AddSpot(psf, spot, truth.flux(fibre, k) * step, light);
    }
  }
  return light;
}

}  // namespace

Array<float, 2> RenderTruth(const Psf& psf, const Truth& truth, int threads) {
  const int bundles = (psf.fibres + kSimulatedBundle - 1) / kSimulatedBundle;
  std::vector<BundleLight> lights(bundles);
  std::atomic<int> next = 0;
  const auto work = [&] {
    for (int bundle = next++; bundle < bundles; bundle = next++) {
      const int first = bundle * kSimulatedBundle;
      lights[bundle] = RenderBundle(psf, truth, {first, std::min(kSimulatedBundle, psf.fibres - first)});
    }
  };
  std::vector<std::thread> helpers;
  try {
    for (int k = 1; k < std::min(threads, bundles); ++k) helpers.emplace_back(work);
  } catch (const std::system_error&) {
    // No more threads are available: the running threads share the work.
  }
  work();
  for (std::thread& helper : helpers) helper.join();

  // Sums in bundle order, so that the result does not depend on which bundle finished first.
  Array<double, 2> sum({psf.rows, psf.columns});
  for (const BundleLight& light : lights) {
    for (int64_t row = 0; row < light.pixels.shape(0); ++row) {
      for (int64_t column = 0; column < light.pixels.shape(1); ++column) {
        sum(row, light.first_column + column) += light.pixels(row, column);
      }
    }
  }
  Array<float, 2> image(sum.shape());
  std::transform(sum.flat().begin(), sum.flat().end(), image.data(),
                 [](double x) { return static_cast<float>(x); });
  return image;
}

}  // namespace spexd
