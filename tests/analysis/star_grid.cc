#include "tests/analysis/star_grid.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "absl/strings/str_format.h"
#include "core/analysis/velocity_units.h"
#include "core/fits/hdu/fits_builder.h"
#include "core/products/template_spectra.h"
#include "core/simulate/random.h"

namespace spexd::testing {
namespace {

struct Line {
  double wave, depth, by_teff, by_logg, by_feh;
};

const std::vector<Line>& Lines() {
  static const auto* const lines = [] {
    auto* made = new std::vector<Line>;
    Random random(20261123, 1);
    for (double wave = 4900; wave < 8100; wave += random.Uniform(1, 11)) {
      made->push_back({wave, random.LogUniform(0.05, 1.2), random.Uniform(-4, 1), random.Uniform(-0.2, 0.2),
                       random.Uniform(0.2, 0.6)});
    }
    return made;
  }();
  return *lines;
}

void WriteSpectrum(const StarGrid& grid, const std::vector<double>& flux, const double (&node)[3],
                   const std::string& path) {
  FitsBuilder fits(static_cast<int64_t>(8 * flux.size()) + (1 << 16));
  fits.BeginImage("PRIMARY", DOUBLE_IMG, {static_cast<int64_t>(flux.size())});
  fits.Number("PHXTEFF", node[0], "[K]");
  fits.Number("PHXLOGG", node[1], "");
  fits.Number("PHXM_H", node[2], "");
  if (!grid.separate_waves) {
    if (*grid.type != '\0') fits.Text("CTYPE1", grid.type, "");
    fits.Number("CRVAL1", grid.first, "");
    fits.Number("CDELT1", grid.step, "");
  }
  fits.Pixels(absl::MakeConstSpan(flux));
  ASSERT_TRUE(fits.Write(path).ok());
}

void WriteWaves(const StarGrid& grid, const std::vector<double>& wave, const std::string& path) {
  FitsBuilder fits(static_cast<int64_t>(8 * wave.size()) + (1 << 16));
  fits.BeginImage("PRIMARY", DOUBLE_IMG, {static_cast<int64_t>(wave.size())});
  if (*grid.type != '\0') fits.Text("CTYPE1", grid.type, "");
  fits.Pixels(absl::MakeConstSpan(wave));
  ASSERT_TRUE(fits.Write(path).ok());
}

}  // namespace

double StarFlux(double wave, double teff, double logg, double feh) {
  constexpr double kSigma = 8 / kLightSpeed;
  const auto before = [](const Line& line, double at) { return line.wave < at; };
  const auto first = std::lower_bound(Lines().begin(), Lines().end(), wave * (1 - 8 * kSigma), before);
  double depth = 0;
  for (auto line = first; line != Lines().end() && line->wave < wave * (1 + 8 * kSigma); ++line) {
    const double x = (wave / line->wave - 1) / kSigma;
    depth += line->depth * std::pow(teff / 5500, line->by_teff) *
             std::exp(line->by_logg * (logg - 4) + line->by_feh * feh - 0.5 * x * x);
  }
  return std::pow(teff / 5500, 4 - 2 * (wave / 6500 - 1)) * std::exp(-depth);
}

std::vector<std::string> WriteStarGrid(const StarGrid& grid, const std::string& folder,
                                       const Change& change) {
  std::vector<double> wave;
  for (int k = 0; grid.first + k * grid.step <= grid.last; ++k) wave.push_back(grid.first + k * grid.step);
  if (grid.separate_waves) WriteWaves(grid, wave, folder + "/WAVE_GRID.fits");
  const bool air = std::string(grid.type) == "AWAV";
  std::vector<std::string> paths;
  for (const double teff : grid.teff) {
    for (const double logg : grid.logg) {
      for (const double feh : grid.feh) {
        std::vector<double> flux;
        for (const double at : wave)
          flux.push_back(StarFlux(air ? VacuumWavelength(at) : at, teff, logg, feh));
        if (change) change(teff, logg, feh, &flux);
        paths.push_back(absl::StrFormat("%s/lte%05.0f-%.2f%+.1f.fits", folder, teff, logg, feh));
        WriteSpectrum(grid, flux, {teff, logg, feh}, paths.back());
      }
    }
  }
  return paths;
}

}  // namespace spexd::testing
