#include "tests/service/support/product_inputs.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "core/analysis/velocity_units.h"
#include "core/fits/hdu/fits_builder.h"
#include "core/fits/writers.h"
#include "core/model/frame.h"
#include "core/products/number_table.h"
#include "tests/service/support/inputs.h"

namespace spexd::testing {
namespace {

// Returns the factor of an absorption line at `offset` bins from its centre.
double Line(double offset, double depth, double width) {
  return 1 - depth * std::exp(-0.5 * offset * offset / (width * width));
}

// Returns the flux of a star; `depth`, which depends on its temperature, is that of its lines.
double Star(double wave, double depth) {
  double flux = 1;
  for (const double centre :
       {5975.0, 6008.0, 6017.5, 6029.0, 6062.0, 6608.0, 6617.5, 6629.0, 6649.0, 6662.0, 6671.0})
    flux *= Line(wave - centre, depth, 1.6);
  return flux;
}

}  // namespace

void WritePreprocWithSky(const std::string& path, bool sky) {
  PreprocFile file;
  file.pixels.Assign({kRows, kColumns}, 10);
  file.ivar.Assign({kRows, kColumns}, 0.1f);
  file.mask.Assign({kRows, kColumns});
  file.readnoise.Assign({kRows, kColumns}, 3);
  for (int i = 0; i < kFibres; ++i)
    file.fibermap.push_back({1000 + i, i, sky && i % 2 == 0 ? "SKY" : "TGT", 10.0 + i, 20.0});
  const absl::Status status = WritePreproc(file, path, false);
  ASSERT_TRUE(status.ok()) << status;
}

void ReshapeToSpectra(BundleResult* bundle) {
  const int64_t fibres = bundle->flux.shape(0), bins = bundle->flux.shape(1);
  for (int64_t i = 0; i < fibres; ++i) {
    const int fibre = bundle->fibres.first + static_cast<int>(i);
    for (int64_t j = 0; j < bins; ++j) {
      const double wave =
          kWaveMin + (kWaveMax - kWaveMin) * static_cast<double>(j) / static_cast<double>(bins - 1);
      const double sky =
          50 + 400 * (1 - Line(static_cast<double>(j) - 0.4 * static_cast<double>(bins), 1, 1.5));
      const double noise =
          std::sin(12.9898 * static_cast<double>(fibre + 1) + 78.233 * static_cast<double>(j));
      bundle->flux(i, j) = static_cast<float>(sky + (fibre % 2 == 1 ? 300 * Star(wave, 0.5) : 0) + noise);
      bundle->ivar(i, j) = 1;
      for (int d = 0; d < kResolutionDiagonals; ++d) {
        const double offset = d - kResolutionHalfWidth;
        bundle->resolution(i, d, j) = static_cast<float>(0.5 * std::exp(-0.5 * offset * offset / 0.64));
      }
    }
  }
}

void WriteFiberflat(const std::string& path, int64_t fibres, int64_t bins) {
  FitsBuilder fits(1 << 20);
  fits.BeginImage("FIBERFLAT", FLOAT_IMG, {fibres, bins});
  const std::vector<float> values(static_cast<size_t>(fibres * bins), 1.1f);
  fits.Pixels(absl::MakeConstSpan(values));
  ASSERT_TRUE(fits.Write(path).ok());
}

void WriteTemplates(const std::string& path, const TemplateGrid& grid) {
  const double step = grid.step_kms / kLightSpeed;
  const int64_t samples = static_cast<int64_t>(std::log(grid.last / grid.first) / step);
  std::vector<float> flux;
  std::vector<double> temperatures;
  for (int node = 0; node < grid.nodes; ++node) {
    temperatures.push_back(5000 + 500 * (grid.hole && node == 1 ? 0 : node));
    const double depth = 0.8 - 0.6 * node / grid.nodes;
    for (int64_t k = 0; k < samples; ++k)
      flux.push_back(static_cast<float>(Star(grid.first * std::exp(static_cast<double>(k) * step), depth)));
  }
  FitsBuilder fits(static_cast<int64_t>(4 * flux.size()));
  fits.BeginImage("TEMPLATES", FLOAT_IMG, {grid.nodes, samples});
  fits.Number("CRVAL1", std::log10(grid.first), "log10 Angstrom");
  fits.Number("CDELT1", step / std::log(10.0), "log10 Angstrom");
  fits.Integer("LOGLAM", 1, "");
  fits.Integer("NPAR", 1, "");
  fits.Text("PARNAM1", "TEFF", "");
  fits.Pixels(absl::MakeConstSpan(flux));
  NumberTable table(grid.nodes);
  table.Add("TEFF", temperatures);
  table.Write("PARAMS", &fits);
  const absl::Status written = fits.Write(path);
  ASSERT_TRUE(written.ok()) << written;
}

}  // namespace spexd::testing
