#include "tests/fits/psf/psf_samples.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>

#include "absl/strings/str_format.h"
#include "absl/types/span.h"
#include "core/fits/hdu/fits_builder.h"

namespace spexd::testing {
namespace {

constexpr int kFibres = 3, kColumns = 30, kRows = 40;
constexpr double kWaveMin = 6000, kWaveMax = 6040;

void AddInstrument(const std::string& type, FitsBuilder& fits) {
  fits.BeginImage("PRIMARY", FLOAT_IMG, {});
  fits.Text("PSFTYPE", type, "");
  fits.Integer("NPIX_X", kColumns, "");
  fits.Integer("NPIX_Y", kRows, "");
  fits.Number("PSFERR", 0.02, "");
}

void AddImage(const std::string& name, const std::vector<int64_t>& shape, const std::vector<double>& values,
              FitsBuilder& fits) {
  fits.BeginImage(name, DOUBLE_IMG, shape);
  fits.Pixels(absl::MakeConstSpan(values));
}

// Adds traces 8 columns apart, from row 5 to row 35.
void AddTraces(const std::string& x, const std::string& y, FitsBuilder& fits) {
  for (const auto& [name, values] : {std::pair{x, std::vector<double>{7, 0.5, 15, 0.5, 23, 0.5}},
                                     std::pair{y, std::vector<double>{20, 15, 20, 15, 20, 15}}}) {
    fits.BeginImage(name, DOUBLE_IMG, {kFibres, 2});
    fits.Number("WAVEMIN", kWaveMin, "");
    fits.Number("WAVEMAX", kWaveMax, "");
    fits.Pixels(absl::MakeConstSpan(values));
  }
}

// Returns Gaussians on columns x rows samples, `oversampling` to a pixel; each image is somewhat wider than
// the one before.
std::vector<double> Images(int count, int rows, int columns, double oversampling, double unit) {
  std::vector<double> images;
  for (int k = 0; k < count; ++k) {
    const double sigma = oversampling * (0.9 + 0.1 * k);
    for (int row = 0; row < rows; ++row) {
      for (int column = 0; column < columns; ++column) {
        const double x = (column - 0.5 * (columns - 1)) / sigma, y = (row - 0.5 * (rows - 1)) / sigma;
        images.push_back(unit * std::exp(-0.5 * (x * x + y * y)));
      }
    }
  }
  return images;
}

// Adds 3 positions by 2 wavelengths, with images of 6 x 8 pixels of 5 x 5 samples.
void AddGrid(double unit, FitsBuilder& fits) {
  fits.Pixels(absl::MakeConstSpan(Images(6, 30, 40, 5, unit)));
  AddImage("SPOTPOS", {3}, {-1, 0, 1}, fits);
  AddImage("SPOTWAVE", {2}, {5995, 6045}, fits);
  AddImage("FIBERPOS", {kFibres}, {-0.9, 0, 0.9}, fits);
}

std::string TwoCores() {
  FitsBuilder fits(0);
  fits.BeginImage("PRIMARY", FLOAT_IMG, {});
  fits.Text("PSFTYPE", "GAUSS-HERMITE2", "");
  fits.Text("PSFVER", "2", "");
  const struct {
    const char* name;
    double first, second;
  } rows[] = {{"X", 7, 0.5},        {"Y", 20, 15},       {"GHSIGX", 1, 0.1},  {"GHSIGY", 1.1, 0},
              {"GHNSIG", 3, 0},     {"GHSIGX2", 2.5, 0}, {"GHSIGY2", 2.4, 0}, {"GH-0-0", 1, 0},
              {"GH-1-0", 0, 0},     {"GH-0-1", 0.02, 0}, {"GH-1-1", 0.01, 0}, {"GH2-0-0", 0.1, 0.01},
              {"TAILAMP", 0.01, 0}, {"TAILCORE", 1, 0},  {"TAILXSCA", 1, 0},  {"TAILYSCA", 1, 0},
              {"TAILINDE", 2.2, 0}, {"CONT", 100, 0}};
  fits.BeginTable("", std::size(rows), {"PARAM", "WAVEMIN", "WAVEMAX", "NCOEFF", "COEFF"},
                  {"8A", "1D", "1D", "1D", "6D"});
  fits.Text("TDIM5", "(2,3)", "coefficients by fibres");
  fits.Text("PSFTYPE", "GAUSS-HERMITE2", "");
  for (const auto& [keyword, value] :
       {std::pair{"NPIX_X", kColumns}, std::pair{"NPIX_Y", kRows}, std::pair{"HSIZEX", 4},
        std::pair{"HSIZEY", 5}, std::pair{"FIBERMIN", 0}, std::pair{"FIBERMAX", kFibres - 1},
        std::pair{"GHDEGX", 1}, std::pair{"GHDEGY", 1}, std::pair{"GHDEGX2", 0}, std::pair{"GHDEGY2", 0}}) {
    fits.Integer(keyword, value, "");
  }
  int64_t row = 1;
  for (const auto& [name, first, second] : rows) {
    fits.ColumnText(1, row, name);
    const double numbers[] = {kWaveMin, kWaveMax, 2};
    for (int k = 0; k < 3; ++k) fits.ColumnValues(2 + k, row, absl::MakeConstSpan(numbers + k, 1));
    std::vector<double> coefficients;
    for (int fibre = 0; fibre < kFibres; ++fibre) {
      coefficients.push_back(first + (row == 1 ? 8 * fibre : 0));
      coefficients.push_back(second);
    }
    fits.ColumnValues(5, row++, absl::MakeConstSpan(coefficients));
  }
  return fits.Bytes().value();
}

std::string SpotGrid(double unit) {
  FitsBuilder fits(0);
  AddInstrument("SPOTGRID", fits);
  fits.Integer("NSPEC", kFibres, "");
  fits.Number("CCDPIXSZ", 0.015, "");
  fits.Number("PIXSIZE", 0.003, "");
  AddTraces("XCOEFF", "YCOEFF", fits);
  fits.BeginImage("SPOTS", DOUBLE_IMG, {3, 2, 30, 40});
  AddGrid(unit, fits);
  return fits.Bytes().value();
}

std::string SampledSpotsFile(double unit) {
  FitsBuilder fits(0);
  AddInstrument("SAMPLED-SPOTS", fits);
  fits.Integer("PSFVER", 1, "");
  fits.Integer("FIBERMIN", 7, "");
  AddTraces("XTRACE", "YTRACE", fits);
  fits.BeginImage("SPOTS", DOUBLE_IMG, {3, 2, 30, 40});
  fits.Integer("OVERSAMP", 5, "");
  fits.Number("XCENTER", 18.5, "");
  AddGrid(unit, fits);
  return fits.Bytes().value();
}

std::string MonoSpot(double unit) {
  FitsBuilder fits(0);
  AddInstrument("MONOSPOT", fits);
  fits.Integer("NSPEC", kFibres, "");
  AddTraces("XCOEFF", "YCOEFF", fits);
  fits.BeginImage("SPOT", DOUBLE_IMG, {24, 32});
  fits.Integer("SCALE", 4, "");
  fits.Pixels(absl::MakeConstSpan(Images(1, 24, 32, 4, unit)));
  return fits.Bytes().value();
}

std::string PcaPix(double unit) {
  FitsBuilder fits(0);
  AddInstrument("PCA-PIX", fits);
  fits.Integer("NSPEC", kFibres, "");
  AddTraces("XCOEFF", "YCOEFF", fits);
  fits.BeginTable("NEXP", 3, {"ICOEFF", "XEXP", "YEXP"}, {"1J", "1J", "1J"});
  const int64_t powers[3][3] = {{0, 1, 2}, {0, 1, 0}, {0, 0, 2}};
  for (int column = 0; column < 3; ++column)
    fits.ColumnValues(column + 1, 1, absl::MakeConstSpan(powers[column]));
  fits.BeginTable("XYSCALE", kFibres, {"IFIBER", "IGROUP", "X0", "XSCALE", "Y0", "YSCALE"},
                  {"1J", "1J", "1D", "1D", "1D", "1D"});
  const int64_t fibres[] = {0, 1, 2}, groups[] = {0, 1, 1};
  fits.ColumnValues(1, 1, absl::MakeConstSpan(fibres));
  fits.ColumnValues(2, 1, absl::MakeConstSpan(groups));
  const double numbers[] = {15, 0.05, 20, 0.04};
  for (int column = 0; column < 4; ++column) {
    const std::vector<double> values(kFibres, numbers[column]);
    fits.ColumnValues(3 + column, 1, absl::MakeConstSpan(values));
  }
  std::vector<double> images = Images(6, 7, 9, 1, unit);
  // All images except those of x^0 y^0 are small changes.
  for (size_t k = 0; k < images.size(); ++k) images[k] *= k / 63 % 3 == 0 ? 1 : 0.01;
  AddImage("PSFIMAGE", {2, 3, 7, 9}, images, fits);
  return fits.Bytes().value();
}

}  // namespace

std::vector<NamedFile> PsfFiles(double unit) {
  return {{"GAUSS-HERMITE2", TwoCores()},
          {"SPOTGRID", SpotGrid(unit)},
          {"MONOSPOT", MonoSpot(unit)},
          {"PCA-PIX", PcaPix(unit)},
          {"SAMPLED-SPOTS", SampledSpotsFile(unit)}};
}

std::string PsfFile(const std::string& type, double unit) {
  for (NamedFile& file : PsfFiles(unit)) {
    if (file.type == type) return std::move(file.bytes);
  }
  ADD_FAILURE() << "there is no sample of " << type;
  return "";
}

}  // namespace spexd::testing
