#include "tests/analysis/command_line/star_library.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "core/analysis/velocity_units.h"
#include "core/fits/hdu/fits_builder.h"
#include "core/products/number_table.h"

namespace spexd::testing {

void WriteStarLibrary(const StarLibrary& library, const std::string& path) {
  constexpr double kStep = 10 / kLightSpeed;
  std::vector<double> temperatures = {4500, 5500, 4500, 5500}, gravities = {2, 2, 4, 4};
  if (library.hole) {
    temperatures.pop_back();
    gravities.pop_back();
  }
  const auto nodes = static_cast<int64_t>(temperatures.size());
  const auto samples = static_cast<int64_t>(std::log(library.last / library.first) / kStep);
  std::vector<float> flux;
  for (int64_t node = 0; node < nodes; ++node) {
    const double depth = 0.1 * static_cast<double>(node + 1);
    for (int64_t k = 0; k < samples; ++k) {
      const double phase = library.phase_per_sample * static_cast<double>(k);
      flux.push_back(static_cast<float>(1 + depth * std::sin(phase)));
    }
  }
  if (library.nan) flux[7] = std::numeric_limits<float>::quiet_NaN();
  FitsBuilder fits(1 << 20);
  fits.BeginImage("TEMPLATES", FLOAT_IMG, {nodes, samples});
  fits.Number("CRVAL1", std::log10(library.first), "");
  fits.Number("CDELT1", kStep / std::log(10.0), "");
  fits.Integer("LOGLAM", 1, "");
  fits.Integer("NPAR", 2, "");
  fits.Text("PARNAM1", "TEFF", "");
  fits.Text("PARNAM2", "LOGG", "");
  fits.Pixels(absl::MakeConstSpan(flux));
  NumberTable table(nodes);
  table.Add("TEFF", temperatures);
  table.Add("LOGG", gravities);
  table.Write("PARAMS", &fits);
  ASSERT_TRUE(fits.Write(path).ok());
}

}  // namespace spexd::testing
