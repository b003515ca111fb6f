// Compares PSFs of specter's models with specter's own results: spots, and frames drawn through them.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "core/fits/hdu/fits_file.h"
#include "core/fits/hdu/table.h"
#include "core/fits/readers.h"
#include "core/model/reference_spot.h"
#include "gtest/gtest.h"
#include "tests/support/scenes/engine_runs.h"
#include "tests/support/scenes/engine_under_test.h"
#include "tests/support/scenes/goldens.h"

namespace spexd::testing {
namespace {

struct SpecterCase {
  std::string name;  // PSFTYPE of the file
  // The largest difference of a reported flux from R times the true one, as a fraction of the brightest bin.
  // Only 11 diagonals of R are kept; with the wide wings of GAUSS-HERMITE2 the next diagonal holds 5.3e-4.
  double cut_resolution;
};

struct Expected {
  Psf psf;
  Array<double, 2> image, photons;
  int first_column = 0, first_row = 0;  // of the image
  WavelengthGrid grid;
};

Source ExpectedFile(const std::string& folder, const SpecterCase& test) {
  return Source::FromFile(folder + "/psf-models/expected-" + test.name + ".fits").value();
}

Expected ReadExpected(const std::string& folder, const SpecterCase& test) {
  const Source source = ExpectedFile(folder, test);
  Expected expected;
  expected.psf = ReadPsf(Source::FromFile(folder + "/psf-models/psf-" + test.name + ".fits").value()).value();
  expected.image = ReadImageHduDouble(source, "PIX").value();
  expected.photons = ReadImageHduDouble(source, "PHOT").value();
  const FitsFile file = FitsFile::Parse(source).value();
  expected.first_column = static_cast<int>(*file.Find({"PIX"})->Integer("X0"));
  expected.first_row = static_cast<int>(*file.Find({"PIX"})->Integer("Y0"));
  const Array<double, 2> wave = ReadImageHduDouble(source, "WAVE").value();
  expected.grid = {wave(0, 0), wave(0, 1) - wave(0, 0), static_cast<int>(wave.size())};
  return expected;
}

// Returns the image on its CCD, with the same ivar for all pixels.
Scene SceneOf(const Expected& expected) {
  Scene scene{std::make_shared<Psf>(expected.psf), std::make_shared<Image>()};
  scene.image->pixels.Assign({expected.psf.rows, expected.psf.columns});
  scene.image->ivar.Assign({expected.psf.rows, expected.psf.columns});
  std::ranges::fill(scene.image->ivar.flat(), 1.0f);
  for (int64_t row = 0; row < expected.image.shape(0); ++row) {
    for (int64_t column = 0; column < expected.image.shape(1); ++column) {
      scene.image->pixels(expected.first_row + row, expected.first_column + column) =
          static_cast<float>(expected.image(row, column));
    }
  }
  return scene;
}

// Returns R times the true flux at a bin, with the diagonals that were kept.
double Convolved(const Array<double, 3>& resolution, const Array<double, 2>& flux, int64_t fibre,
                 int64_t bin) {
  const int64_t half = resolution.shape(1) / 2;
  double sum = 0;
  for (int64_t d = -half; d <= half; ++d) {
    const int64_t from = bin - d;
    if (from >= 0 && from < flux.shape(1)) sum += resolution(fibre, half + d, from) * flux(fibre, from);
  }
  return sum;
}

class SpecterModels : public EngineTest, public ::testing::WithParamInterface<SpecterCase> {};

TEST_P(SpecterModels, SpotsAreSpecters) {
  SPEXD_GOLDENS_OR_SKIP(folder);
  const Expected expected = ReadExpected(folder, GetParam());
  const FitsFile file = FitsFile::Parse(ExpectedFile(folder, GetParam())).value();
  const TableView table = TableView::Make(*file.Find({"SPOTS"})).value();
  double most = 0;
  for (int64_t row = 0; row < table.rows(); ++row) {
    const auto integer = [&](const char* name) {
      return static_cast<int>(table.Integer(row, **table.Get(name)).value());
    };
    double wave = 0;
    std::vector<double> pixels(static_cast<size_t>((*table.Get("PIX"))->repeat));
    ASSERT_TRUE(table.Numbers(row, **table.Get("WAVE"), absl::MakeSpan(&wave, 1)).ok());
    ASSERT_TRUE(table.Numbers(row, **table.Get("PIX"), absl::MakeSpan(pixels)).ok());
    Spot spot;
    EvaluateSpot(expected.psf, integer("FIBRE"), wave, &spot);
    EXPECT_EQ(spot.first_column, integer("X0"));
    EXPECT_EQ(spot.first_row, integer("Y0"));
    ASSERT_EQ(expected.psf.spot_columns(), integer("NX"));
    ASSERT_EQ(expected.psf.spot_rows(), integer("NY"));
    for (size_t k = 0; k < spot.values.size(); ++k)
      most = std::max(most, std::abs(spot.values[k] - pixels[k]));
  }
  std::printf("  %g of a spot's light, %d spots\n", most, static_cast<int>(table.rows()));
  EXPECT_LT(most, 1e-7);
}

TEST_P(SpecterModels, FramesThatSpecterDrawsAreExtracted) {
  SPEXD_GOLDENS_OR_SKIP(folder);
  const Expected expected = ReadExpected(folder, GetParam());
  const Scene scene = SceneOf(expected);
  const Bundles bundles = RunJob(engine(), scene, {.grid = expected.grid, .want_model = true});
  ASSERT_EQ(bundles.size(), 1u);
  const BundleResult& result = bundles.at(0);
  ExpectSound(result);
  Array<double, 2> flux(expected.photons.shape());
  std::ranges::transform(expected.photons.flat(), flux.data(),
                         [&](double photons) { return photons / expected.grid.step; });
  const double brightest = *std::max_element(flux.flat().begin(), flux.flat().end());
  constexpr int64_t kEnds = 20;
  std::vector<double> differences;
  for (int64_t fibre = 0; fibre < flux.shape(0); ++fibre) {
    for (int64_t bin = kEnds; bin < flux.shape(1) - kEnds; ++bin) {
      differences.push_back(
          std::abs(result.flux(fibre, bin) - Convolved(result.resolution, flux, fibre, bin)) / brightest);
    }
  }
  std::ranges::sort(differences);
  std::printf("  flux: %.2g of the brightest bin at most, median %.2g\n", differences.back(),
              differences[differences.size() / 2]);
  EXPECT_LT(differences.back(), GetParam().cut_resolution);
  EXPECT_LT(differences[differences.size() / 2], 5e-5);
}

INSTANTIATE_TEST_SUITE_P(Types, SpecterModels,
                         ::testing::Values(SpecterCase{"GAUSS-HERMITE2", 6e-4}, SpecterCase{"MONOSPOT", 3e-4},
                                           SpecterCase{"PCA-PIX", 3e-4}, SpecterCase{"SPOTGRID", 3e-4}),
                         [](const auto& info) {
                           std::string name = info.param.name;
                           std::erase(name, '-');
                           return name;
                         });

}  // namespace
}  // namespace spexd::testing
