#include <algorithm>
#include <cmath>
#include <numbers>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "core/base/status_macros.h"
#include "core/fits/hdu/fits_builder.h"
#include "core/fits/writers.h"

namespace spexd {
namespace {

constexpr int kVersion = 3;

// The Legendre polynomial of degree `degree` at t, and the one of the degree below.
std::pair<double, double> LegendrePair(int degree, double t) {
  double below = 0, value = 1;
  for (int k = 0; k < degree; ++k) {
    const double next = ((2 * k + 1) * t * value - k * below) / (k + 1);
    below = value;
    value = next;
  }
  return {value, below};
}

// The same polynomial as a series on another domain, by projection with Gauss-Legendre quadrature, which is
// exact here.
LegendreTable OnDomain(const LegendreTable& table, double wave_min, double wave_max) {
  if (table.wave_min == wave_min && table.wave_max == wave_max) return table;
  const int64_t fibres = table.coeff.shape(0);
  const int count = static_cast<int>(table.coeff.shape(1));
  LegendreTable moved{Array<double, 2>({fibres, count}), wave_min, wave_max};
  for (int n = 0; n < count; ++n) {
    double node = std::cos(std::numbers::pi * (n + 0.75) / (count + 0.5)), slope = 1;
    for (int step = 0; step < 50; ++step) {  // Newton's method, which converges long before the limit
      const auto [value, below] = LegendrePair(count, node);
      slope = count * (node * value - below) / (node * node - 1);
      node -= value / slope;
    }
    const double weight = 2 / ((1 - node * node) * slope * slope);
    const double wave = wave_min + 0.5 * (node + 1) * (wave_max - wave_min);
    for (int64_t i = 0; i < fibres; ++i) {
      const double value = Evaluate(table, static_cast<int>(i), wave);
      for (int k = 0; k < count; ++k) {
        moved.coeff(i, k) += 0.5 * (2 * k + 1) * weight * value * LegendrePair(k, node).first;
      }
    }
  }
  return moved;
}

void WriteTrace(const char* name, const LegendreTable& table, const Psf& psf, FitsBuilder& fits) {
  fits.BeginImage(name, DOUBLE_IMG, {table.coeff.shape(0), table.coeff.shape(1)});
  fits.Text("PSFTYPE", "GAUSS-HERMITE", "");
  fits.Integer("PSFVER", kVersion, "");
  fits.Integer("FIBERMIN", psf.fibre_min, "first fibre");
  fits.Integer("FIBERMAX", psf.fibre_min + psf.fibres - 1, "last fibre (included)");
  fits.Number("WAVEMIN", table.wave_min, "[Angstrom] of the Legendre series");
  fits.Number("WAVEMAX", table.wave_max, "[Angstrom] of the Legendre series");
}

struct Row {
  std::string name;
  const LegendreTable* table;  // nullptr for a constant
  double constant = 0;
};

std::vector<Row> TableRows(const GaussHermiteSpots& spots) {
  const GaussHermiteCore& core = spots.core();
  std::vector<Row> rows{{"GHSIGX", &core.sigma_x}, {"GHSIGY", &core.sigma_y}};
  for (int x = 0; x <= core.max_degree_x; ++x) {
    for (int y = 0; y <= core.max_degree_y; ++y) {
      const auto term = std::ranges::find_if(
          core.terms, [x, y](const GaussHermiteTerm& t) { return t.degree_x == x && t.degree_y == y; });
      rows.push_back(
          {absl::StrFormat("GH-%d-%d", x, y), term == core.terms.end() ? nullptr : &term->amplitude});
    }
  }
  // Without a tail, only the amplitude is 0: readers that evaluate the tail anyway divide by its core.
  const Row tail[] = {{"TAILAMP", &spots.tail_amplitude},
                      {"TAILCORE", &spots.tail_core, 1},
                      {"TAILXSCA", &spots.tail_scale_x, 1},
                      {"TAILYSCA", &spots.tail_scale_y, 1},
                      {"TAILINDE", &spots.tail_index, 2}};
  for (const Row& row : tail)
    rows.push_back({row.name, row.table->empty() ? nullptr : row.table, row.constant});
  return rows;
}

void WriteParameters(const Psf& psf, FitsBuilder& fits) {
  const GaussHermiteSpots& spots = GaussHermite(psf);
  const std::vector<Row> rows = TableRows(spots);
  int64_t coefficients = 1;
  for (const Row& row : rows) {
    if (row.table != nullptr) coefficients = std::max(coefficients, row.table->coeff.shape(1));
  }
  fits.BeginTable("PSF", static_cast<int64_t>(rows.size()), {"PARAM", "COEFF", "LEGDEGX", "LEGDEGW"},
                  {"8A", absl::StrCat(psf.fibres * coefficients, "D"), "1J", "1J"});
  fits.Text("TDIM2", absl::StrFormat("(%d,%d)", coefficients, psf.fibres), "coefficients by fibres");
  fits.Text("PSFTYPE", "GAUSS-HERMITE", "");
  fits.Text("PSFVER", absl::StrCat(kVersion), "");
  fits.Integer("NPIX_X", psf.columns, "columns of the CCD image");
  fits.Integer("NPIX_Y", psf.rows, "rows of the CCD image");
  fits.Integer("HSIZEX", spots.stamp.x.middle, "half size of a spot, NX = 2 HSIZEX + 1");
  fits.Integer("HSIZEY", spots.stamp.y.middle, "half size of a spot, NY = 2 HSIZEY + 1");
  fits.Integer("FIBERMIN", psf.fibre_min, "first fibre");
  fits.Integer("FIBERMAX", psf.fibre_min + psf.fibres - 1, "last fibre (included)");
  fits.Integer("NPARAMS", static_cast<int64_t>(rows.size()), "number of parameters");
  fits.Integer("LEGDEG", coefficients - 1, "degree of the Legendre series");
  fits.Integer("GHDEGX", spots.core().max_degree_x, "Hermite degree along columns");
  fits.Integer("GHDEGY", spots.core().max_degree_y, "Hermite degree along rows");
  fits.Number("WAVEMIN", psf.wave_min, "[Angstrom] of the Legendre series");
  fits.Number("WAVEMAX", psf.wave_max, "[Angstrom] of the Legendre series");
  fits.Number("PSFERR", psf.psferr, "fractional error of the PSF model");
  if (!psf.camera.empty()) fits.Text("CAMERA", psf.camera, "camera and spectrograph");
  if (!psf.original_psf.empty()) fits.Text("IN_PSF", psf.original_psf, "PSF that this one was made from");
  std::vector<double> values(static_cast<size_t>(psf.fibres * coefficients));
  for (size_t k = 0; k < rows.size(); ++k) {
    std::fill(values.begin(), values.end(), 0.0);
    for (int i = 0; i < psf.fibres; ++i) values[static_cast<size_t>(i * coefficients)] = rows[k].constant;
    if (rows[k].table != nullptr) {
      const LegendreTable table = OnDomain(*rows[k].table, psf.wave_min, psf.wave_max);
      for (int i = 0; i < psf.fibres; ++i) {
        const absl::Span<const double> row = table.coeff.Row(i);
        std::copy(row.begin(), row.end(), values.begin() + i * coefficients);
      }
    }
    const int64_t number = static_cast<int64_t>(k) + 1;
    fits.ColumnText(1, number, rows[k].name);
    fits.ColumnValues(2, number, absl::MakeConstSpan(values));
    const int64_t degrees[] = {1, coefficients - 1};
    fits.ColumnValues(3, number, absl::MakeConstSpan(degrees, 1));
    fits.ColumnValues(4, number, absl::MakeConstSpan(degrees + 1, 1));
  }
}

}  // namespace

absl::Status WritePsf(const Psf& psf, const std::string& path) {
  SPEXD_RETURN_IF_ERROR(CheckPsf(psf));
  const auto* const spots = std::get_if<GaussHermiteSpots>(&psf.spots);
  if (spots == nullptr || spots->cores.size() != 1) {
    return absl::InvalidArgumentError(
        absl::StrCat(path, ": only GAUSS-HERMITE PSFs, whose spots have one core, are written"));
  }
  FitsBuilder fits(int64_t{4} << 20);
  WriteTrace("XTRACE", psf.traces.x, psf, fits);
  fits.Pixels(psf.traces.x.coeff.flat());
  WriteTrace("YTRACE", psf.traces.y, psf, fits);
  fits.Pixels(psf.traces.y.coeff.flat());
  WriteParameters(psf, fits);
  return fits.Write(path);
}

}  // namespace spexd
