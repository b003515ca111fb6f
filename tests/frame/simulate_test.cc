#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>

#include "core/frame/barycentric.h"
#include "core/model/image.h"
#include "core/plan/grid_plan.h"
#include "core/simulate/instrument.h"
#include "core/simulate/random.h"
#include "core/simulate/renderer.h"
#include "core/simulate/simulator.h"
#include "core/simulate/sky_and_targets.h"
#include "core/simulate/truth_grid.h"
#include "tests/support/matchers.h"

namespace spexd {
namespace {

SimulatorOptions Small() {
  SimulatorOptions options;
  options.fibres = 10;
  options.rows = 300;
  return options;
}

SimulatorOptions Clean() {
  SimulatorOptions options = Small();
  options.noise = false;
  options.cosmic_rays = 0;
  options.dead_columns = 0;
  options.holes = 0;
  return options;
}

Simulation Make(const SimulatorOptions& options) {
  auto simulation = Simulate(options);
  EXPECT_TRUE(simulation.ok()) << simulation.status();
  return *std::move(simulation);
}

TEST(Random, IsTheSameWithEveryStandardLibrary) {
  Random random(20200219, 7);
  EXPECT_DOUBLE_EQ(random.Uniform(), 0.024130096768904097);
  EXPECT_DOUBLE_EQ(random.Uniform(), 0.54940348134213279);
  EXPECT_NEAR(random.Normal(), -0.81031332253063626, 1e-12);
  EXPECT_EQ(random.Poisson(12.5), 12);
  EXPECT_NE(Random(20200219, 8).Uniform(), Random(20200219, 7).Uniform());
}

TEST(Random, HasTheMomentsOfItsDistributions) {
  Random random(1, 1);
  constexpr int kCount = 100000;
  for (const double mean : {0.0, 0.3, 4.0, 25.0}) {
    double sum = 0, square = 0;
    for (int k = 0; k < kCount; ++k) {
      const double value = random.Poisson(mean);
      sum += value;
      square += (value - mean) * (value - mean);
    }
    EXPECT_NEAR(sum / kCount, mean, 5 * std::sqrt(mean / kCount)) << mean;
    EXPECT_NEAR(square / kCount, mean, 0.03 * mean) << mean;
  }
  double sum = 0, square = 0, fourth = 0;
  for (int k = 0; k < kCount; ++k) {
    const double value = random.Normal();
    sum += value;
    square += value * value;
    fourth += value * value * value * value;
  }
  EXPECT_NEAR(sum / kCount, 0, 0.015);
  EXPECT_NEAR(square / kCount, 1, 0.02);
  EXPECT_NEAR(fourth / kCount, 3, 0.15);
}

TEST(SimulatePsf, MakesASoundPsfOfEveryCamera) {
  struct Case {
    char camera;
    int rows, columns;
    WavelengthGrid grid;
  };
  const Case cases[] = {{'b', 4096, 4096, *MakeWavelengthGrid(3600, 5800, 0.8)},
                        {'r', 4128, 4114, *MakeWavelengthGrid(5760, 7620, 0.8)},
                        {'z', 4128, 4114, *MakeWavelengthGrid(7520, 9824, 0.8)}};
  for (const Case& c : cases) {
    SCOPED_TRACE(c.camera);
    SimulatorOptions options;
    options.camera = c.camera;
    const auto psf = SimulatePsf(options);
    ASSERT_TRUE(psf.ok()) << psf.status();
    EXPECT_TRUE(CheckPsf(*psf).ok()) << CheckPsf(*psf);
    EXPECT_EQ(psf->rows, c.rows);
    EXPECT_EQ(psf->columns, c.columns);
    EXPECT_EQ(psf->fibres, 500);
    EXPECT_EQ(psf->spot_columns(), 17);
    EXPECT_EQ(psf->spot_rows(), 11);
    EXPECT_TRUE(CheckGrid(*psf, c.grid).ok()) << CheckGrid(*psf, c.grid);
    EXPECT_TRUE(CheckGrid(*psf, c.grid.Scaled(1.0001)).ok());
    for (int fibre = 0; fibre < 500; ++fibre) {
      for (const double wave : {c.grid.first, 0.5 * (c.grid.first + c.grid.last()), c.grid.last()}) {
        const double x = Evaluate(psf->traces.x, fibre, wave), y = Evaluate(psf->traces.y, fibre, wave);
        ASSERT_TRUE(x > 8 && x < c.columns - 9) << fibre << " " << wave << " " << x;
        ASSERT_TRUE(y > 6 && y < c.rows - 7) << fibre << " " << wave << " " << y;
        const double gap = fibre % 25 == 0 ? 15 : 6.5;
        if (fibre > 0) {
          ASSERT_GT(x, Evaluate(psf->traces.x, fibre - 1, wave) + gap) << fibre;
        }
        ASSERT_NEAR(Evaluate(GaussHermite(*psf).core().sigma_x, fibre, wave), 1.05, 0.15);
        ASSERT_NEAR(Evaluate(GaussHermite(*psf).core().sigma_y, fibre, wave), 1.11, 0.15);
      }
    }
  }
}

TEST(SimulatePsf, ShrinksItsDomainToTheRows) {
  const Psf psf = *SimulatePsf(Small());
  EXPECT_EQ(psf.rows, 300);
  EXPECT_LT(psf.columns, 150);
  EXPECT_NEAR(psf.wave_max - psf.wave_min, 279 * 0.533, 1);
  for (int fibre = 0; fibre < 10; ++fibre) {
    EXPECT_NEAR(Evaluate(psf.traces.y, fibre, psf.wave_min), 10, 2);
    EXPECT_NEAR(Evaluate(psf.traces.y, fibre, psf.wave_max), 289, 2);
    EXPECT_GE(Evaluate(psf.traces.x, fibre, psf.wave_min), 20);
    EXPECT_LE(Evaluate(psf.traces.x, fibre, psf.wave_max), psf.columns - 20);
  }
  EXPECT_TRUE(CheckGrid(psf, *MakeWavelengthGrid(psf.wave_min, psf.wave_max, 0.8)).ok());
}

TEST(Simulate, NamesOptionsThatMakeNoInstrument) {
  const auto message = [](auto change) {
    SimulatorOptions options = Small();
    change(options);
    const auto simulation = Simulate(options);
    EXPECT_EQ(simulation.status().code(), absl::StatusCode::kInvalidArgument);
    EXPECT_EQ(SimulatePsf(options).status(), simulation.status());
    return std::string(simulation.status().message());
  };
  EXPECT_THAT(message([](auto& o) { o.camera = 'x'; }), HasSubstr("camera is 'x', must be b, r or z"));
  EXPECT_THAT(message([](auto& o) { o.fibres = 0; }), HasSubstr("fibres is 0, must be 1 to 500"));
  EXPECT_THAT(message([](auto& o) { o.fibres = 501; }), HasSubstr("fibres is 501"));
  EXPECT_THAT(message([](auto& o) { o.rows = 10; }), HasSubstr("rows is 10, must be 60 to 8192"));
  EXPECT_THAT(message([](auto& o) { o.rows = -1; }), HasSubstr("rows is -1"));
  EXPECT_THAT(message([](auto& o) { o.columns = 60; }), HasSubstr("columns is 60, must be 114 to 8192"));
  EXPECT_THAT(message([](auto& o) { o.read_noise = 0; }), HasSubstr("read_noise is 0"));
  EXPECT_THAT(message([](auto& o) { o.read_noise = NAN; }), HasSubstr("read_noise is nan"));
  EXPECT_THAT(message([](auto& o) { o.dead_columns = 1000; }), HasSubstr("dead columns is 1000"));
  EXPECT_THAT(message([](auto& o) { o.cosmic_rays = 2000000; }), HasSubstr("cosmic rays is 2000000"));
  EXPECT_THAT(message([](auto& o) { o.holes = -1; }), HasSubstr("holes is -1, must be 0 to 10000"));
}

TEST(Simulate, IsDeterministicForASeed) {
  const Simulation a = Make(Small()), b = Make(Small());
  EXPECT_EQ(a.preproc.pixels, b.preproc.pixels);
  EXPECT_EQ(a.preproc.ivar, b.preproc.ivar);
  EXPECT_EQ(a.preproc.mask, b.preproc.mask);
  EXPECT_EQ(a.truth.flux, b.truth.flux);
  EXPECT_EQ(a.psf.traces.x.coeff, b.psf.traces.x.coeff);
  SimulatorOptions other = Small();
  other.seed = 2;
  EXPECT_FALSE(a.preproc.pixels == Make(other).preproc.pixels);
}

TEST(Simulate, MakesTheSameImageWithAnyNumberOfThreads) {
  SimulatorOptions options = Clean();
  options.fibres = 60;
  options.rows = 80;
  const Simulation simulation = Make(options);
  const Array<float, 2> one = RenderTruth(simulation.psf, simulation.truth, 1).value();
  EXPECT_EQ(one, RenderTruth(simulation.psf, simulation.truth, 3).value());
  EXPECT_EQ(one, simulation.preproc.pixels);
}

TEST(Simulate, SamplesTheTruthUniformly) {
  const Simulation simulation = Make(Clean());
  const double first = simulation.truth.wave.front();
  for (size_t k = 0; k < simulation.truth.wave.size(); ++k) {
    EXPECT_NEAR(simulation.truth.wave[k], first + kTruthStep * static_cast<double>(k), 1e-9);
  }
  EXPECT_THAT(simulation.preproc.mask.flat(), Each(0));
}

TEST(Simulate, GivesNoiseThatItsIvarDescribes) {
  SimulatorOptions noisy = Clean();
  noisy.noise = true;
  const Simulation simulation = Make(noisy);
  const Array<float, 2> expected = RenderTruth(simulation.psf, simulation.truth, 1).value();
  double sum = 0, square = 0;
  for (int64_t k = 0; k < expected.size(); ++k) {
    const double ivar = simulation.preproc.ivar.data()[k];
    ASSERT_EQ(ivar, kIvarStep * std::round(1 / (expected.data()[k] + 2.9 * 2.9) / kIvarStep));
    const double pull = (simulation.preproc.pixels.data()[k] - expected.data()[k]) * std::sqrt(ivar);
    ASSERT_TRUE(std::isfinite(pull));
    sum += pull;
    square += pull * pull;
  }
  const double count = static_cast<double>(expected.size());
  EXPECT_NEAR(sum / count, 0, 5 / std::sqrt(count));
  EXPECT_NEAR(square / count, 1, 0.05);
  EXPECT_THAT(simulation.preproc.readnoise.flat(), Each(2.9f));
}

TEST(Simulate, MarksWhatItDamages) {
  SimulatorOptions options = Small();
  options.cosmic_rays = 12;
  options.dead_columns = 1;
  const Simulation damaged = Make(options);
  SimulatorOptions undamaged = Clean();
  undamaged.noise = true;
  const Simulation sound = Make(undamaged);
  int64_t hole = 0, dead = 0, cosmic = 0;
  for (int64_t k = 0; k < damaged.preproc.mask.size(); ++k) {
    const int32_t mask = damaged.preproc.mask.data()[k];
    EXPECT_EQ(mask & ~kUnusablePixelBits, 0);
    hole += (mask & 8) != 0;
    dead += (mask & 4) != 0;
    cosmic += (mask & 16) != 0;
    // Damage is added to the same noise, and only to marked pixels.
    if (mask == 0) {
      ASSERT_EQ(damaged.preproc.pixels.data()[k], sound.preproc.pixels.data()[k]);
    }
    ASSERT_TRUE(std::isfinite(damaged.preproc.pixels.data()[k]));
  }
  EXPECT_EQ(hole, 60 * 18);
  EXPECT_EQ(dead, 300);
  EXPECT_GE(cosmic, 6);
}

TEST(Simulate, MakesAsManyHolesAsAskedFor) {
  const auto saturated = [](int holes) {
    SimulatorOptions options = Clean();
    options.holes = holes;
    const Simulation simulation = Make(options);
    return std::ranges::count_if(simulation.preproc.mask.flat(),
                                 [](int32_t mask) { return (mask & 8) != 0; });
  };
  EXPECT_EQ(saturated(0), 0);
  EXPECT_EQ(saturated(1), 60 * 18);
  // Holes may overlap.
  EXPECT_GT(saturated(3), 60 * 18);
  EXPECT_LE(saturated(3), 3 * 60 * 18);
}

TEST(Simulate, HoldsSkyStarsAndGalaxies) {
  const Simulation simulation = Make(Clean());
  ASSERT_THAT(simulation.preproc.fibermap, SizeIs(10));
  for (int i = 0; i < 10; ++i) {
    EXPECT_EQ(simulation.preproc.fibermap[i].fibre, i);
    EXPECT_EQ(simulation.preproc.fibermap[i].object_type, i == 3 ? "SKY" : "TGT");
    EXPECT_EQ(simulation.truth.fibres[i], i);
  }
  EXPECT_EQ(KindOf(3), TargetKind::kSky);
  EXPECT_EQ(KindOf(7), TargetKind::kStar);
  EXPECT_EQ(KindOf(8), TargetKind::kGalaxy);
  for (const float flux : simulation.truth.flux.flat()) {
    ASSERT_GT(flux, 0);
    ASSERT_LT(flux, 1e5f);
  }
}

TEST(Simulate, GivesEachFibreOfAnArcTheLinesOfItsLampsAlone) {
  SimulatorOptions options = Clean();
  const double wave = Make(options).psf.wave_min + 50.07;
  options.lamps = {{wave, 4000}, {wave + 1000, 1e6}};
  const Simulation arc = Make(options);
  for (int i = 0; i < options.fibres; ++i) {
    double sum = 0, centroid = 0;
    for (size_t k = 0; k < arc.truth.wave.size(); ++k) {
      sum += arc.truth.flux(i, k) * kTruthStep;
      centroid += arc.truth.flux(i, k) * kTruthStep * (arc.truth.wave[k] - wave);
    }
    EXPECT_NEAR(sum, 4000, 1);
    EXPECT_NEAR(centroid / sum, 0, 1e-3);
  }
  EXPECT_THAT(arc.preproc.extra_cards, ::testing::Contains(HasSubstr("'arc ")));
}

TEST(Simulate, WritesAHeaderThatAllowsABarycentricCorrection) {
  const Simulation simulation = Make(Clean());
  EXPECT_THAT(simulation.preproc.extra_cards, Each(SizeIs(80)));
  const auto pointing = FindPointing(simulation.preproc.extra_cards, {});
  ASSERT_TRUE(pointing.ok()) << pointing.status();
  EXPECT_EQ(pointing->ra, 179.6);
  EXPECT_EQ(pointing->dec, 0.1);
  EXPECT_DOUBLE_EQ(pointing->mjd, 58899.35 + 500 / 86400.0);
  EXPECT_TRUE(BarycentricFactor(*pointing).ok());
}

}  // namespace
}  // namespace spexd
