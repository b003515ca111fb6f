// Compares the kernels of emission lines on the emulator with the search on the processor.
#include "cuda/analysis/lines/lines.h"

#include <gtest/gtest.h>

#include <cmath>
#include <deque>
#include <random>
#include <vector>

#include "core/analysis/lines/emission_lines.h"
#include "cuda/analysis/lines/line_tables.h"
#include "tests/analysis/made_up_frame.h"
#include "tests/cuda_runtime/fake_cuda.h"

namespace spexd::cuda {
namespace {

using testing::AddLight;
using testing::AddNoise;
using testing::DarkFrame;
using testing::kFirstWave;
using testing::kFrameBins;
using testing::kWaveStep;

std::vector<float> Floats(const Array<double, 2>& values) {
  return std::vector<float>(values.flat().begin(), values.flat().end());
}

using Targets = std::vector<std::vector<int>>;

// The device's data of an arm.
struct EmulatedArm {
  EmulatedArm(const UsableSpectra& spectra, const StackPlan& plan, size_t rows)
      : tables(plan),
        flux(Floats(spectra.flux)),
        ivar(Floats(spectra.ivar)),
        weighted(rows * spectra.wave.size(), NAN),
        traces(rows * kLineFilters * spectra.wave.size(), {NAN, NAN}) {}

  LineTables tables;
  std::vector<float> flux, ivar, weighted;
  std::vector<LineTrace> traces;
};

std::vector<LineRedshift> FindOnEmulator(const std::vector<UsableSpectra>& arms, const Targets& targets,
                                         const LineOptions& options) {
  RedshiftGrid grid;
  std::vector<int32_t> rows, first_row = {0};
  for (const std::vector<int>& target : targets) {
    rows.insert(rows.end(), target.begin(), target.end());
    first_row.push_back(static_cast<int32_t>(rows.size()));
  }
  StackArgs args;
  args.targets = static_cast<int>(targets.size());
  args.rows = static_cast<int>(rows.size());
  args.first_row = first_row.data();
  std::deque<EmulatedArm> on_device;
  for (const UsableSpectra& spectra : arms) {
    const StackPlan plan = PlanStack(spectra.wave, options).value();
    AddArm(plan, &grid);
    EmulatedArm& from = on_device.emplace_back(spectra, plan, rows.size());
    args.stack = from.tables.stack();
    LineArm& arm = args.arm[args.arms++];
    arm = from.tables.At(from.tables.profiles.data(), from.tables.positions.data());
    arm.traces = from.traces.data();
    const LineSpectra there = {args.rows,
                               rows.data(),
                               from.flux.data(),
                               from.ivar.data(),
                               spectra.resolution->data(),
                               from.weighted.data(),
                               arm};
    EXPECT_EQ(ConfigureLines(arm.bins), cudaSuccess);
    EXPECT_EQ(FindLineResiduals(there, nullptr), cudaSuccess);
    EXPECT_EQ(FilterLines(there, nullptr), cudaSuccess);
  }
  args.stack.wide = static_cast<int>(grid.wide);
  args.frame = args.arms == 1 && args.rows == args.targets;  // every target here has rows
  std::vector<float> typical(arms.size() * rows.size() * kLineFilters, NAN),
      dchi2(targets.size() * static_cast<size_t>(grid.redshifts), NAN);
  std::vector<LineMaxima> maxima(targets.size());
  args.typical = typical.data();
  args.dchi2 = dchi2.data();
  args.maxima = maxima.data();
  EXPECT_EQ(StackLines(args, nullptr), cudaSuccess);
  std::vector<LineRedshift> found;
  for (const LineMaxima& of_target : maxima) found.push_back(RedshiftOf(grid, MaximaOf(of_target)));
  return found;
}

void ExpectSameLines(const std::vector<UsableSpectra>& arms, const Targets& targets,
                     const LineOptions& options) {
  const std::vector<LineRedshift> expected = FindLineRedshifts(arms, targets, options).value(),
                                  found = FindOnEmulator(arms, targets, options);
  for (size_t k = 0; k < targets.size(); ++k) {
    SCOPED_TRACE(k);
    const double limit = 1e-5 * expected[k].dchi2 + 1e-5;
    EXPECT_NEAR(found[k].dchi2, expected[k].dchi2, limit);
    EXPECT_NEAR(found[k].gap, expected[k].gap, limit);
    EXPECT_EQ(found[k].lines, expected[k].lines);
    EXPECT_EQ(found[k].warning, expected[k].warning);
    EXPECT_EQ(std::isnan(found[k].error), std::isnan(expected[k].error));
    if (expected[k].gap <= 1) continue;
    EXPECT_NEAR(found[k].z, expected[k].z, 1e-6);
    EXPECT_NEAR(found[k].z2, expected[k].z2, 1e-6);
    EXPECT_NEAR(found[k].error, expected[k].error, 1e-3 * expected[k].error);
  }
}
void ExpectSameLines(const UsableSpectra& spectra, const std::vector<int>& rows, const LineOptions& options) {
  Targets targets;
  for (const int row : rows) targets.push_back({row});
  ExpectSameLines(std::vector<UsableSpectra>{spectra}, targets, options);
}

// Returns lines of sigma 60 km/s at a redshift, on a continuum.
std::vector<double> Emitter(double z, double flux) {
  std::vector<double> light(kFrameBins, 3);
  for (const auto& [wave, part] :
       {std::pair{4862.68, 1.0}, {4960.295, 0.5}, {5008.240, 1.5}, {3728.7, 1.2}}) {
    const double centre = wave * (1 + z), sigma = centre * 60 / 299792.458;
    for (int j = 0; j < kFrameBins; ++j) {
      const double x = (kFirstWave + j * kWaveStep - centre) / sigma;
      light[j] += flux * part * kWaveStep / (sigma * std::sqrt(2 * M_PI)) * std::exp(-0.5 * x * x);
    }
  }
  return light;
}

class EmulatedLines : public ::testing::Test {
 protected:
  EmulatedLines() {
    testing::FakeCuda::Get().Reset({{}});
    AddNoise(&random_, &frame_);
    for (int i = 0; i < 5; ++i) AddLight(Emitter(0.235 + 0.01 * i, 20 + 20 * i), i, &frame_);
    AddLight(Emitter(0.65, 80), 5, &frame_);
  }

  std::mt19937 random_{20261123};
  Frame frame_ = DarkFrame(8, 4);
};

TEST_F(EmulatedLines, AreThoseOfTheProcessor) {
  ExpectSameLines(MakeUsable(frame_).value(), {0, 1, 2, 3, 4, 5, 6, 7}, {});
}

TEST_F(EmulatedLines, OfArmsAndExposuresTogetherAreThoseOfTheProcessor) {
  const UsableSpectra whole = MakeUsable(frame_).value();
  const int64_t bins = whole.bins();
  const std::vector<UsableSpectra> arms = {BinsOf(whole, 0, bins / 2 + 20),
                                           BinsOf(whole, bins / 2 - 20, bins)};
  ExpectSameLines(arms, {{0}, {1, 2}, {5}, {3, 4, 6}, {7}}, {});
  ExpectSameLines({whole}, {{0, 1, 2, 3, 4}, {5, 6}}, {.max_redshift = 1.63});
}

TEST_F(EmulatedLines, ThatAnArmDoesNotSeeAreThoseOfTheProcessor) {
  for (int j = 0; j < kFrameBins / 2; ++j) {
    frame_.spectra.mask(2, j) = kMaskNoData;
    if (j % 40 != 0) frame_.spectra.mask(3, j) = kMaskNoData;
  }
  const UsableSpectra whole = MakeUsable(frame_).value();
  const int64_t bins = whole.bins();
  const std::vector<UsableSpectra> arms = {BinsOf(whole, 0, bins / 2), BinsOf(whole, bins / 2, bins)};
  ExpectSameLines(arms, {{2}, {3}, {2, 3}}, {});
}

TEST_F(EmulatedLines, OfSomeRowsWithOtherOptionsAreThoseOfTheProcessor) {
  ExpectSameLines(MakeUsable(frame_).value(), {5, 2}, {.max_redshift = 0.7, .step = 35, .sigma = 110});
}

TEST_F(EmulatedLines, WithHolesAndOutliersAreThoseOfTheProcessor) {
  for (int j = 0; j < kFrameBins; ++j) {
    if (j > 90 && j < 330) frame_.spectra.mask(0, j) = kMaskNoData;
    if (j != 20 && j != 21) frame_.spectra.mask(1, j) = kMaskNoData;
    frame_.spectra.mask(2, j) = kMaskNoData;
    if (j % 37 == 0) frame_.spectra.flux(3, j) += 500;
    if (j % 2 == 0) frame_.spectra.ivar(4, j) = 0;
  }
  frame_.spectra.flux(1, 20) = 1000;
  frame_.spectra.flux(5, 7) = NAN;
  ExpectSameLines(MakeUsable(frame_).value(), {0, 1, 2, 3, 4, 5}, {});
}

}  // namespace
}  // namespace spexd::cuda
