#include "core/simulate/renderer.h"

#include <algorithm>
#include <cstdint>
#include <vector>

#include "core/base/status_macros.h"
#include "core/base/threads/parallel.h"
#include "core/extract/cpu/spots/spots.h"
#include "core/model/fibre_range.h"
#include "core/model/wavelength_grid.h"
#include "core/simulate/instrument.h"

namespace spexd {
namespace {

// Number of wavelengths whose spots are in memory at a time.
constexpr int kWavesAtATime = 64;

// The light of one bundle: all rows, and the columns that it covers.
struct BundleLight {
  int first_column = 0;
  Array<double, 2> pixels;  // [row, column - first_column]
};

BundleLight MakeWindow(const Psf& psf, const Truth& truth, FibreRange fibres) {
  const StampAxis& axis = psf.stamp().x;
  int first = psf.columns, end = 0;
  std::vector<double> x(truth.wave.size());
  for (int fibre = fibres.first; fibre < fibres.end(); ++fibre) {
    EvaluateMany(psf.traces.x, fibre, truth.wave, absl::MakeSpan(x));
    for (const double centre : x) {
      const int left = LocateSpot(centre, axis).first;
      first = std::min(first, std::max(left, 0));
      end = std::max(end, std::min(left + axis.size, psf.columns));
    }
  }
  BundleLight light;
  light.first_column = first;
  light.pixels.Assign({psf.rows, std::max(0, end - first)});
  return light;
}

void AddSpot(const cpu::Spots& spots, int fibre, int bin, double electrons, BundleLight& light) {
  const int top = spots.first_row(fibre, bin), left = spots.first_column(fibre, bin) - light.first_column;
  const int rows = static_cast<int>(light.pixels.shape(0)), columns = static_cast<int>(light.pixels.shape(1));
  const int begin = std::max(0, -left), end = std::min(spots.columns(), columns - left);
  for (int row = std::max(0, -top); row < std::min(spots.rows(), rows - top); ++row) {
    const double* values = spots.Spot(fibre, bin) + row * spots.columns();
    for (int column = begin; column < end; ++column) {
      light.pixels(top + row, left + column) += electrons * values[column];
    }
  }
}

BundleLight RenderBundle(const Psf& psf, const Truth& truth, FibreRange fibres) {
  BundleLight light = MakeWindow(psf, truth, fibres);
  cpu::Spots spots;
  const int count = static_cast<int>(truth.wave.size());
  const double step = (truth.wave.back() - truth.wave.front()) / (count - 1);
  for (int first = 0; first < count; first += kWavesAtATime) {
    const WavelengthGrid grid = {truth.wave[first], step, std::min(kWavesAtATime, count - first)};
    int added = 0;
    spots.Evaluate(psf, grid, fibres, {}, [&](int evaluated) {
      for (; added < evaluated; ++added) {
        for (int i = 0; i < fibres.count; ++i) {
          AddSpot(spots, i, added, truth.flux(fibres.first + i, first + added) * step, light);
        }
      }
    });
  }
  return light;
}

}  // namespace

absl::StatusOr<Array<float, 2>> RenderTruth(const Psf& psf, const Truth& truth, int threads) {
  const int bundles = (psf.fibres + kSimulatedBundle - 1) / kSimulatedBundle;
  Array<double, 2> sum({psf.rows, psf.columns});
  // As many bundles are rendered at a time as there are threads, so that few are in memory. They are added in
  // order, so that the sum does not depend on which was finished first.
  const int at_a_time = std::max(threads, 1);
  for (int first = 0; first < bundles; first += at_a_time) {
    std::vector<BundleLight> lights(std::min(at_a_time, bundles - first));
    SPEXD_RETURN_IF_ERROR(ParallelFor(static_cast<int64_t>(lights.size()), threads, [&](int64_t k) {
      const int fibre = (first + static_cast<int>(k)) * kSimulatedBundle;
      lights[k] = RenderBundle(psf, truth, {fibre, std::min(kSimulatedBundle, psf.fibres - fibre)});
      return absl::OkStatus();
    }));
    for (const BundleLight& light : lights) {
      for (int64_t row = 0; row < light.pixels.shape(0); ++row) {
        for (int64_t column = 0; column < light.pixels.shape(1); ++column) {
          sum(row, light.first_column + column) += light.pixels(row, column);
        }
      }
    }
  }
  Array<float, 2> image(sum.shape());
  std::transform(sum.flat().begin(), sum.flat().end(), image.data(),
                 [](double x) { return static_cast<float>(x); });
  return image;
}

}  // namespace spexd
