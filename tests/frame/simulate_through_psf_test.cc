// Frames simulated through given PSFs, with any spot model, wavelengths and direction of the rows.
#include <cmath>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "client/compare/compare.h"
#include "core/extract/cpu/cpu_engine.h"
#include "core/model/image.h"
#include "core/model/psf.h"
#include "core/model/reference_spot.h"
#include "core/plan/grid_plan.h"
#include "core/simulate/instrument.h"
#include "core/simulate/renderer.h"
#include "core/simulate/simulator.h"
#include "core/simulate/truth_grid.h"
#include "tests/support/matchers.h"
#include "tests/support/scenes/engine_runs.h"

namespace spexd {
namespace {

SimulatorOptions TenFibres() {
  SimulatorOptions options;
  options.fibres = 10;
  options.rows = 300;
  return options;
}

// Returns the PSF that the simulator makes.
Psf Made() { return *SimulatePsf(TenFibres()); }

std::vector<LegendreTable*> AllTables(Psf* psf) {
  std::vector<LegendreTable*> tables = GaussHermite(*psf).Tables();
  tables.push_back(&psf->traces.x);
  tables.push_back(&psf->traces.y);
  return tables;
}

// Returns the same spots in the same places, at other wavelengths.
Psf At(double wave_min, double wave_max) {
  Psf psf = Made();
  psf.wave_min = wave_min;
  psf.wave_max = wave_max;
  for (LegendreTable* table : AllTables(&psf)) {
    if (table->empty()) continue;
    table->wave_min = wave_min;
    table->wave_max = wave_max;
  }
  return psf;
}

// Returns a PSF whose wavelengths decrease from row to row.
Psf Descending() {
  Psf psf = Made();
  for (LegendreTable* table : AllTables(&psf)) {
    for (int64_t fibre = 0; fibre < table->coeff.shape(0); ++fibre) {
      for (int64_t k = 1; k < table->coeff.shape(1); k += 2) table->coeff(fibre, k) *= -1;
    }
  }
  return psf;
}

// Returns a PSF of Gaussian images, four samples to a pixel; their widths vary along the slit and with
// wavelength.
Psf Sampled() {
  constexpr int kColumns = 60, kRows = 48, kOversampling = 4;
  Psf psf = Made();
  SampledSpots spots;
  SampledLayout& layout = spots.layout;
  LayOutImages(kColumns, kRows, kOversampling, 0.5 * (kColumns - 1), 0.5 * (kRows - 1), &layout);
  spots.positions = {0, 1};
  spots.wavelengths = {psf.wave_min, psf.wave_max};
  layout.positions = layout.wavelengths = 2;
  layout.images = 4;
  const int64_t of_an_image = layout.stamps() / layout.images;
  Array<float, 2> stamps({layout.stamps(), layout.stamp.pixels()});
  for (int image = 0; image < layout.images; ++image) {
    const double sigma_x = kOversampling * (0.9 + 0.1 * (image / 2)),
                 sigma_y = kOversampling * (1 + 0.1 * (image % 2));
    std::vector<double> samples;
    for (int row = 0; row < kRows; ++row) {
      for (int column = 0; column < kColumns; ++column) {
        const double u = (column - 0.5 * (kColumns - 1)) / sigma_x, v = (row - 0.5 * (kRows - 1)) / sigma_y;
        samples.push_back(std::exp(-0.5 * (u * u + v * v)));
      }
    }
    BinImage(samples, kColumns, kRows, layout,
             stamps.flat().subspan(image * of_an_image * layout.stamp.pixels(),
                                   of_an_image * layout.stamp.pixels()));
  }
  spots.stamps = SharedArray<float, 2>(std::move(stamps));
  for (int fibre = 0; fibre < psf.fibres; ++fibre)
    spots.fibres.push_back({.position = fibre / (psf.fibres - 1.0)});
  spots.sigma_y = MeanSigmaY(spots);
  psf.spots = std::move(spots);
  return psf;
}

SimulatorOptions Through(Psf psf) {
  SimulatorOptions options;
  options.psf = std::make_shared<const Psf>(std::move(psf));
  options.cosmic_rays = options.dead_columns = options.holes = 0;
  return options;
}

Simulation Simulated(const SimulatorOptions& options) {
  auto simulation = Simulate(options);
  EXPECT_TRUE(simulation.ok()) << simulation.status();
  return *std::move(simulation);
}

struct PsfCase {
  const char* name;
  Psf (*psf)();
};
constexpr PsfCase kPsfCases[] = {{"made", Made},
                                 {"infrared", [] { return At(15000, 15700); }},
                                 {"high resolution", [] { return At(5000, 5010); }},
                                 {"descending", Descending},
                                 {"sampled", Sampled}};

TEST(SimulateThroughPsf, MakesTheFrameOfAMadePsfIfItIsGiven) {
  const Simulation made = Simulated(TenFibres());
  SimulatorOptions options;
  options.psf = std::make_shared<const Psf>(made.psf);
  const Simulation given = Simulated(options);
  EXPECT_EQ(given.preproc.pixels, made.preproc.pixels);
  EXPECT_EQ(given.preproc.ivar, made.preproc.ivar);
  EXPECT_EQ(given.preproc.mask, made.preproc.mask);
  EXPECT_EQ(given.preproc.extra_cards, made.preproc.extra_cards);
  EXPECT_EQ(given.truth.wave, made.truth.wave);
  EXPECT_EQ(given.truth.flux, made.truth.flux);
  EXPECT_THAT(given.preproc.fibermap, SizeIs(10));
}

TEST(SimulateThroughPsf, PutsEachSpotOfTheTruthOnTheImage) {
  for (const PsfCase& c : kPsfCases) {
    SCOPED_TRACE(c.name);
    SimulatorOptions options = Through(c.psf());
    options.noise = false;
    const Simulation simulation = Simulated(options);
    const Psf& psf = simulation.psf;
    const Truth& truth = simulation.truth;
    const double step = truth.wave[1] - truth.wave[0];
    const int nx = psf.spot_columns(), ny = psf.spot_rows();
    Array<double, 2> expected({psf.rows, psf.columns});
    Spot spot;
    for (int fibre = 0; fibre < psf.fibres; ++fibre) {
      for (size_t k = 0; k < truth.wave.size(); ++k) {
        EvaluateSpot(psf, fibre, truth.wave[k], &spot);
        for (int pixel = 0; pixel < nx * ny; ++pixel) {
          const int row = spot.first_row + pixel / nx, column = spot.first_column + pixel % nx;
          if (row < 0 || column < 0 || row >= psf.rows || column >= psf.columns) continue;
          expected(row, column) += spot.values[pixel] * truth.flux(fibre, k) * step;
        }
      }
    }
    for (int64_t k = 0; k < expected.size(); ++k) {
      const double pixel = expected.data()[k];
      ASSERT_NEAR(simulation.preproc.pixels.data()[k], pixel, 1e-6 * pixel + 1e-6) << k;
    }
  }
}

TEST(SimulateThroughPsf, PutsAllLightOnTheRowsBetweenTheEnds) {
  for (const PsfCase& c : kPsfCases) {
    SCOPED_TRACE(c.name);
    const Psf psf = c.psf();
    Truth truth;
    truth.fibres.resize(psf.fibres);
    const double middle = 0.5 * (psf.wave_min + psf.wave_max), step = (psf.wave_max - psf.wave_min) / 1000;
    truth.wave = WavelengthGrid{middle - 200 * step, step, 401}.Values();
    truth.flux.Assign({psf.fibres, 401}, 50.0f);
    const auto image = RenderTruth(psf, truth, 2);
    ASSERT_TRUE(image.ok()) << image.status();
    double sum = 0;
    for (const float pixel : image->flat()) sum += pixel;
    EXPECT_NEAR(sum / (psf.fibres * 401 * 50.0 * step), 1, 1e-6);
  }
}

// Checks the pulls of an extraction with the same PSF, in bins of one and a half CCD rows.
TEST(SimulateThroughPsf, IsExtractedAsTheTruthSeenThroughTheResolution) {
  const auto engine = MakeCpuEngine({.threads = 2});
  for (const PsfCase& c : kPsfCases) {
    SCOPED_TRACE(c.name);
    const Simulation simulation = Simulated(Through(c.psf()));
    const testing::Scene scene = {std::make_shared<Psf>(simulation.psf), std::make_shared<Image>()};
    scene.image->pixels = simulation.preproc.pixels;
    scene.image->ivar = simulation.preproc.ivar;
    const double wave_min = simulation.psf.wave_min, wave_max = simulation.psf.wave_max;
    const double bin = 1.5 * (wave_max - wave_min) / simulation.psf.rows;
    const auto grid = MakeWavelengthGrid(wave_min + 20 * bin, wave_max - 20 * bin, bin);
    testing::Bundles bundles = RunJob(engine.get(), scene, {.grid = *grid, .psferr = 0, .float32 = true});
    ASSERT_THAT(bundles, SizeIs(1));
    Frame frame;
    frame.grid = *grid;
    frame.fibres = {0, simulation.psf.fibres};
    frame.spectra = std::move(bundles.begin()->second.spectra);
    const auto difference = cli::CompareTruth(frame, simulation.truth);
    ASSERT_TRUE(difference.ok()) << difference.status();
    std::printf("%s: %d pulls, mean %.3f, robust sigma %.3f, beyond 5 sigma %g\n", c.name,
                static_cast<int>(difference->compared), difference->mean, difference->robust_sigma,
                difference->beyond_5);
    EXPECT_GT(difference->compared, 1200);
    EXPECT_NEAR(difference->mean, 0, 0.1);
    EXPECT_NEAR(difference->robust_sigma, 1, 0.08);
    EXPECT_LT(difference->beyond_5, 2e-3);
  }
}

TEST(SimulateThroughPsf, LeavesLostFibresDark) {
  for (const PsfCase& c : kPsfCases) {
    SCOPED_TRACE(c.name);
    Psf psf = c.psf();
    Truth truth = Simulated(Through(psf)).truth;
    Psf lost = psf;
    std::visit([](auto& model) { model.EmptyFibre(3); }, lost.spots);
    const auto image = RenderTruth(lost, truth, 1);
    for (float& flux : truth.flux.Row(3)) flux = 0;
    const auto expected = RenderTruth(psf, truth, 1);
    ASSERT_TRUE(image.ok() && expected.ok());
    EXPECT_EQ(*image, *expected);
    EXPECT_EQ(Simulated(Through(lost)).truth.wave, truth.wave);
  }
}

TEST(SimulateThroughPsf, SamplesTheTruthAsFinelyAsTheRows) {
  EXPECT_EQ(MakeTruthGrid(Made())->step, 0.2);
  EXPECT_EQ(MakeTruthGrid(Descending())->step, 0.2);
  const double narrow = MakeTruthGrid(At(5000, 5010))->step, wide = MakeTruthGrid(At(15000, 15700))->step;
  EXPECT_NEAR(narrow, 10.0 / 280 / 3, 0.002);
  EXPECT_NEAR(wide, 700.0 / 280 / 3, 0.1);
  EXPECT_EQ(MakeTruthGrid(At(15000, 15700), TruthOf::kSources)->step, 0.2);
  EXPECT_LT(MakeTruthGrid(At(5000, 5010), TruthOf::kSources)->step, 0.02);
}

TEST(SimulateThroughPsf, CoversWhatTheCcdShowsOfALongDomain) {
  Psf psf = Made();
  const WavelengthGrid whole = *MakeTruthGrid(psf);
  psf.rows = 150;
  const WavelengthGrid half = *MakeTruthGrid(psf);
  EXPECT_EQ(half.first, whole.first);
  const double row = Evaluate(psf.traces.y, 0, half.last());
  EXPECT_GT(row, psf.rows + psf.spot_rows());
  EXPECT_LT(row, psf.rows + 100);
}

TEST(SimulateThroughPsf, GivesFramesTheFibresAndTheCameraOfThePsf) {
  Psf psf = Made();
  psf.fibre_min = 2500;
  psf.camera = "Z5";
  const Simulation z = Simulated(Through(psf));
  EXPECT_EQ(z.preproc.fibermap[9].fibre, 2509);
  EXPECT_THAT(z.preproc.extra_cards, Contains(StartsWith("CAMERA  = 'Z5      '")));
  EXPECT_EQ(*CompleteOptions(Through(psf))->camera, 'z');
  psf.camera = "'b3      '";
  EXPECT_THAT(Simulated(Through(psf)).preproc.extra_cards, Contains(StartsWith("CAMERA  = 'b3      '")));
  EXPECT_EQ(*CompleteOptions(Through(psf))->camera, 'b');
  psf.camera = "O'Hara";
  EXPECT_THAT(Simulated(Through(psf)).preproc.extra_cards, Contains(StartsWith("CAMERA  = 'O''Hara ")));
  EXPECT_EQ(*CompleteOptions(Through(psf))->camera, 'r');
  SimulatorOptions options = Through(psf);
  options.camera = 'b';
  EXPECT_EQ(*CompleteOptions(options)->camera, 'b');
  psf.camera = "";
  options.psf = std::make_shared<const Psf>(psf);
  EXPECT_THAT(Simulated(options).preproc.extra_cards, Contains(StartsWith("CAMERA  = 'b0      '")));
}

TEST(SimulateThroughPsf, NamesWhatCannotBeSimulated) {
  const auto refusal = [](const std::function<void(Psf&, SimulatorOptions&)>& change) {
    Psf psf = Made();
    SimulatorOptions options = Through(psf);
    change(psf, options);
    options.psf = std::make_shared<const Psf>(std::move(psf));
    const absl::Status status = Simulate(options).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    return std::string(status.message());
  };
  EXPECT_THAT(refusal([](Psf& psf, auto&) { psf.rows = 50; }),
              HasSubstr("the PSF's NPIX_Y is 50, must be 60 to 8192"));
  EXPECT_THAT(refusal([](Psf& psf, auto&) { psf.columns = 9000; }),
              HasSubstr("the PSF's NPIX_X is 9000, must be 60 to 8192"));
  EXPECT_THAT(refusal([](Psf& psf, auto&) { psf.fibres = 11; }), HasSubstr("XTRACE"));
  EXPECT_THAT(refusal([](Psf& psf, auto& options) { psf.camera = "b0", options.camera = 'r'; }),
              HasSubstr("camera is 'r', but CAMERA of the PSF is 'b0'"));
  EXPECT_THAT(refusal([](Psf& psf, auto&) {
                psf = Sampled();
                std::get<SampledSpots>(psf.spots).stamps = {};
              }),
              HasSubstr("the PSF is an outline"));
  EXPECT_THAT(refusal([](Psf& psf, auto&) {
                for (double& row : psf.traces.y.coeff.flat()) row += 1e5;
              }),
              HasSubstr("no light of the PSF falls on its CCD of 300 rows: 10 of 10 fibres have spots"));
  EXPECT_THAT(refusal([](Psf& psf, auto&) {
                for (int fibre = 0; fibre < psf.fibres; ++fibre) GaussHermite(psf).EmptyFibre(fibre);
              }),
              HasSubstr("0 of 10 fibres have spots"));
  EXPECT_THAT(refusal([](Psf& psf, auto& options) {
                psf = At(15000, 15700);
                options.field = Field();
              }),
              HasSubstr("emitters have lines from 3747.34 to 13734.6 Angstrom, none from 14988 to 15712"));
  EXPECT_THAT(refusal([](Psf&, auto& options) {
                options.lamps = {{4358.35, 100}, {5462.27, 100}};
              }),
              HasSubstr("the lamps' 2 lines are from 4358.35 to 5462.27 Angstrom, none of them from 6558"));
}

}  // namespace
}  // namespace spexd
