// The references that spexd ships, with simulated frames of their lines.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <string>
#include <vector>

#include "core/simulate/sky_and_targets.h"
#include "core/simulate/truth_grid.h"
#include "core/traces/measure.h"
#include "core/traces/shifts/reference.h"
#include "tests/support/build_paths.h"
#include "tests/support/temp_folder.h"
#include "tests/traces/shifted_frame.h"

namespace spexd::testing {
namespace {

using ::testing::AllOf;
using ::testing::Each;
using ::testing::Gt;
using ::testing::Lt;

ReferenceSpectrum Shipped(const std::string& name) {
  const auto reference =
      ParseReferenceSpectrum(name, ReadBytes(SourceFolder() + "/core/traces/references/" + name));
  EXPECT_TRUE(reference.ok()) << reference.status();
  return reference.ok() ? *reference : ReferenceSpectrum();
}

// Draws lines with 300 to 30000 electrons each, whatever the reference states.
ShiftedFrameOptions OfLines(char camera, const ReferenceSpectrum& reference) {
  ShiftedFrameOptions options;
  options.simulator = {.camera = camera, .fibres = 30, .seed = 5, .cosmic_rays = 0};
  options.x = MakeSeries({{0.3, 0.05}, {-0.1, 0.0}});
  options.y = MakeSeries({{-0.4, 0.06}, {0.1, 0.03}});
  std::vector<LampLine> lines;
  std::mt19937 random(3);
  for (const double wave : reference.wave) {
    const double rank = static_cast<double>(random()) / std::mt19937::max();
    lines.push_back({wave, 300 * std::pow(100, rank)});
  }
  options.edit_truth = [lines](Truth* truth) {
    const int bins = static_cast<int>(truth->wave.size());
    const WavelengthGrid grid = {truth->wave.front(), kTruthStep, bins};
    *truth = MakeLampTruth(static_cast<int>(truth->fibres.size()), grid, lines).value();
  };
  return options;
}

void ExpectAbsolute(const ShiftedFrame& frame, const ReferenceSpectrum& reference) {
  const auto shifts = MeasureTraceShifts(frame.image, frame.psf, &reference, {}, {.threads = 2});
  ASSERT_TRUE(shifts.ok()) << shifts.status();
  EXPECT_EQ(shifts->x.status, ShiftStatus::kOk) << shifts->reason;
  EXPECT_EQ(shifts->y.status, ShiftStatus::kOk) << shifts->reason;
  const SeriesDifference y = Difference(frame.psf, shifts->y.series, frame.y);
  std::printf("dy %.4f rms %.4f most, %d lines\n", y.rms, y.largest, shifts->lines);
  EXPECT_LT(y.rms, 0.01);
  EXPECT_LT(y.largest, 0.03);
}

TEST(ShippedReferences, MeasureArcsOfAllCamerasAbsolutely) {
  const ReferenceSpectrum lamps = Shipped("arc-lamps.dat");
  for (const char camera : {'b', 'r', 'z'}) ExpectAbsolute(MakeShiftedFrame(OfLines(camera, lamps)), lamps);
}

TEST(ShippedReferences, MeasureTheNightSkyOfRedCamerasAbsolutely) {
  const ReferenceSpectrum sky = Shipped("night-sky.dat");
  for (const char camera : {'r', 'z'}) ExpectAbsolute(MakeShiftedFrame(OfLines(camera, sky)), sky);
}

TEST(ShippedReferences, HaveLinesThatSpectrographsSeparate) {
  for (const char* name : {"arc-lamps.dat", "night-sky.dat"}) {
    const ReferenceSpectrum lines = Shipped(name);
    for (size_t k = 1; k < lines.wave.size(); ++k) EXPECT_GT(lines.wave[k] - lines.wave[k - 1], 4);
    EXPECT_THAT(lines.wave, Each(AllOf(Gt(3600), Lt(9824)))) << "the cameras' wavelengths";
  }
}

}  // namespace
}  // namespace spexd::testing
