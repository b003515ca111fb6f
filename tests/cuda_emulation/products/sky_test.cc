// Compares the kernels of the sky on the emulator with the sky by processors.
#include "core/analysis/sky/sky.h"

#include <gtest/gtest.h>

#include <cmath>
#include <numeric>
#include <random>
#include <vector>

#include "cuda/analysis/sky/sky_arrays.h"
#include "cuda/analysis/sky/sky_rounds.h"
#include "tests/analysis/made_up_frame.h"
#include "tests/cuda_runtime/fake_cuda.h"

namespace spexd::cuda {
namespace {

using testing::AddLight;
using testing::AddNoise;
using testing::DarkFrame;
using testing::kFrameBins;
using testing::SkyLight;

// A sky on the emulated device.
struct DeviceSky {
  SkyArrays arrays;
  SkyRounds rounds;
  std::vector<float> flux, ivar;
  std::vector<std::byte> memory;
};

absl::StatusOr<DeviceSky> FitOnEmulator(const UsableSpectra& spectra, const std::vector<int>& sky_fibres,
                                        const SkyOptions& options) {
  DeviceSky sky;
  sky.flux.assign(spectra.flux.flat().begin(), spectra.flux.flat().end());
  sky.ivar.assign(spectra.ivar.flat().begin(), spectra.ivar.flat().end());
  const int fibres = static_cast<int>(spectra.fibres()), bins = static_cast<int>(spectra.bins());
  Carver count(nullptr);
  LayOutSky(fibres, bins, static_cast<int>(sky_fibres.size()), &count);
  sky.memory.assign(count.bytes() + kArrayAlignment, std::byte{0xff});  // NaN
  std::byte* const aligned =
      sky.memory.data() + kArrayAlignment - reinterpret_cast<uintptr_t>(sky.memory.data()) % kArrayAlignment;
  Carver carver(aligned);
  sky.arrays = LayOutSky(fibres, bins, static_cast<int>(sky_fibres.size()), &carver);
  std::copy(spectra.wave.begin(), spectra.wave.end(), sky.arrays.wave);
  std::copy(sky_fibres.begin(), sky_fibres.end(), sky.arrays.sky_fibre);
  SkyModelArgs args;
  args.spectra = {.fibres = fibres,
                  .bins = bins,
                  .flux = sky.flux.data(),
                  .ivar = sky.ivar.data(),
                  .resolution = spectra.resolution->data(),
                  .wave = sky.arrays.wave,
                  .sky_fibres = static_cast<int>(sky_fibres.size()),
                  .sky_fibre = sky.arrays.sky_fibre};
  args.fit = sky.arrays.fit;
  args.model = sky.arrays.model;
  EXPECT_EQ(ConfigureSky(), cudaSuccess);
  auto rounds = FitSkyRounds({args.spectra, args.fit}, options, {0, "emulator"}, nullptr);
  if (!rounds.ok()) return rounds.status();
  sky.rounds = *rounds;
  const SkyOutput output = {sky.flux.data(), sky.ivar.data(), sky.arrays.throughput};
  EXPECT_EQ(FinishSky(args, sky.rounds, options, output, nullptr), cudaSuccess);
  return sky;
}

// The limits are those of float32 arithmetic with float64 sums.
void ExpectSameSky(const UsableSpectra& spectra, const std::vector<int>& sky_fibres,
                   const SkyOptions& options, int chunks = 7) {
  const Sky expected = FitSky(spectra, sky_fibres, options).value();
  const auto found = FitOnEmulator(spectra, sky_fibres, options);
  ASSERT_TRUE(found.ok()) << found.status();
  EXPECT_EQ(found->rounds.chunks.count, chunks);
  EXPECT_EQ(found->rounds.rounds, expected.rounds);
  EXPECT_EQ(found->rounds.rejected, expected.rejected);
  std::vector<int> kept;
  for (size_t i = 0; i < sky_fibres.size(); ++i) {
    if (found->arrays.fit.is_dropped[i] == 0) kept.push_back(sky_fibres[i]);
  }
  EXPECT_EQ(kept, expected.sky_fibres);
  double model = 0, variance = 0, flux = 0, ivar = 0;
  for (int64_t k = 0; k < expected.flux.size(); ++k) {
    const double known = expected.statistical_ivar.flat()[k], of = expected.ivar.flat()[k];
    const double sigma = of > 0 ? 1 / std::sqrt(of) : 1;
    const bool has_sky = std::isfinite(expected.model_variance.flat()[k]);
    if (has_sky) {
      model = std::max(model,
                       std::abs(found->arrays.model.model[k] - expected.model.flat()[k]) * std::sqrt(known));
      variance = std::max(variance, std::abs(1 / (found->arrays.model.variance[k] * known) - 1));
    }
    flux = std::max(flux, std::abs(found->flux[k] - expected.flux.flat()[k]) / sigma);
    ASSERT_EQ(found->ivar[k] > 0, of > 0) << k;
    if (of > 0) ivar = std::max(ivar, std::abs(found->ivar[k] / of - 1));
  }
  EXPECT_LT(model, 1e-4);
  EXPECT_LT(variance, 1e-5);
  EXPECT_LT(flux, 1e-4);
  EXPECT_LT(ivar, 1e-5);
  for (int64_t i = 0; i < spectra.fibres(); ++i)
    EXPECT_NEAR(found->arrays.throughput[i], expected.throughput[i], 1e-6) << i;
  for (int64_t j = 0; j < spectra.bins(); ++j) {
    const double limit =
        1e-4 / std::sqrt(expected.statistical_ivar(0, j)) + 1e-6 * std::abs(expected.deconvolved[j]);
    EXPECT_NEAR(found->arrays.fit.sky[j], expected.deconvolved[j], 10 * limit) << j;
  }
  std::printf("  %d rounds, %d rejected; model %.1e, variance %.1e, flux %.1e, ivar %.1e\n", expected.rounds,
              static_cast<int>(expected.rejected), model, variance, flux, ivar);
}

class EmulatedSky : public ::testing::Test {
 protected:
  EmulatedSky() {
    testing::FakeCuda::Get().Reset({{}});
    std::iota(sky_fibres_.begin(), sky_fibres_.end(), 1);
    for (int i = 0; i < kFibres; ++i) {
      std::vector<double> light = SkyLight();
      for (double& value : light) value *= 1 + 0.02 * std::sin(1.0 + i);
      AddLight(light, i, &frame_);
    }
    AddNoise(&random_, &frame_);
  }

  static constexpr int kFibres = 16, kSkyFibres = 9;
  std::mt19937 random_{20261123};
  Frame frame_ = DarkFrame(kFibres, 25);
  std::vector<int> sky_fibres_ = std::vector<int>(kSkyFibres);
};

TEST_F(EmulatedSky, IsThatOfTheProcessor) { ExpectSameSky(MakeUsable(frame_).value(), sky_fibres_, {}); }

TEST_F(EmulatedSky, WithoutLinesIsThatOfTheProcessor) {
  ExpectSameSky(MakeUsable(frame_).value(), sky_fibres_,
                {.systematic_variance = false, .line_throughput = false});
}

TEST_F(EmulatedSky, WithHolesOutliersAndASourceIsThatOfTheProcessor) {
  for (int j = 0; j < kFrameBins; ++j) {
    if (j >= 200 && j < 203) {
      for (int i = 0; i < kFibres; ++i) frame_.spectra.mask(i, j) = kMaskNoData;
    }
    if (j > 135 && j < 155) frame_.spectra.mask(2, j) = kMaskNoData;
    if (j % 60 == 7) frame_.spectra.flux(3, j) += 90;
    if (j % 70 == 9) frame_.spectra.flux(4, j) += 70;
    frame_.spectra.flux(6, j) += 60;
    if (j >= 320 && j < 340) frame_.spectra.ivar(12, j) = 0;
  }
  ExpectSameSky(MakeUsable(frame_).value(), sky_fibres_, {});
}

TEST_F(EmulatedSky, OfOneFibreIsThatOfTheProcessor) { ExpectSameSky(MakeUsable(frame_).value(), {5}, {}); }

// If only every third bin has data, influence reaches far beyond a halo.
TEST_F(EmulatedSky, OfBinsThatHardlyTellIsThatOfTheProcessor) {
  for (int i = 0; i < kFibres; ++i) {
    for (int j = 0; j < kFrameBins; ++j) {
      if (j % 3 != 0) frame_.spectra.mask(i, j) = kMaskNoData;
    }
  }
  ExpectSameSky(MakeUsable(frame_).value(), sky_fibres_, {}, 1);
}

}  // namespace
}  // namespace spexd::cuda
