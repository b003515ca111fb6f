// The kernels of emission lines on the emulator, against the search on the processor.
#include "cuda/analysis/lines/lines.h"

#include <gtest/gtest.h>

#include <cmath>
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

std::vector<LineRedshift> FindOnEmulator(const UsableSpectra& spectra, const std::vector<int>& rows,
                                         const LineOptions& options) {
  const StackPlan plan = PlanStack(spectra.wave, options).value();
  const LineTables tables(plan);
  const std::vector<float> flux = Floats(spectra.flux), ivar = Floats(spectra.ivar);
  const size_t count = rows.size(), bins = spectra.wave.size();
  std::vector<float> weighted(count * bins, NAN), dchi2(count * plan.redshifts, NAN);
  std::vector<LineTrace> traces(count * kLineFilters * bins, {NAN, NAN});
  std::vector<LineMaxima> maxima(count);
  LinesArgs args;
  args.rows = static_cast<int>(count);
  args.bins = static_cast<int>(bins);
  args.fibre = rows.data();
  args.flux = flux.data();
  args.ivar = ivar.data();
  args.resolution = spectra.resolution->data();
  args.stack = tables.At(tables.profiles.data(), tables.positions.data());
  args.weighted = weighted.data();
  args.traces = traces.data();
  args.dchi2 = dchi2.data();
  args.maxima = maxima.data();
  EXPECT_EQ(ConfigureLines(args.bins), cudaSuccess);
  EXPECT_EQ(FindLineResiduals(args, nullptr), cudaSuccess);
  EXPECT_EQ(FilterLines(args, nullptr), cudaSuccess);
  EXPECT_EQ(StackLines(args, nullptr), cudaSuccess);
  std::vector<LineRedshift> found;
  for (const LineMaxima& of_row : maxima) found.push_back(RedshiftOf(plan, MaximaOf(of_row)));
  return found;
}

void ExpectSameLines(const UsableSpectra& spectra, const std::vector<int>& rows, const LineOptions& options) {
  const std::vector<LineRedshift> expected = FindLineRedshifts(spectra, rows, options).value(),
                                  found = FindOnEmulator(spectra, rows, options);
  for (size_t k = 0; k < rows.size(); ++k) {
    SCOPED_TRACE(rows[k]);
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

// Lines of sigma 60 km/s at a redshift, on a continuum.
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
