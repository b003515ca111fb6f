// GPUs with less shared memory than the one for which the stages were designed.
#include <cmath>
#include <memory>
#include <utility>
#include <vector>

#include "core/extract/cpu/cpu_engine.h"
#include "cuda/runtime/cuda_engine.h"
#include "gtest/gtest.h"
#include "tests/cuda_runtime/fake_cuda.h"
#include "tests/support/scenes/engine_runs.h"

namespace spexd::testing {
namespace {

class LittleSharedMemory : public ::testing::TestWithParam<int> {
 protected:
  void ExpectParity(const SceneOptions& options, const RunOptions& run, const ResultLimits& limits) {
    ExpectParity(MakeScene(options), run, limits);
  }

  void ExpectParity(const Scene& scene, const RunOptions& run, const ResultLimits& limits) {
    FakeCuda::Device device;
    device.shared_bytes = static_cast<size_t>(GetParam()) << 10;
    device.free_bytes = size_t{4} << 30;
    FakeCuda::Get().Reset({device});
    const auto engine = cuda::MakeCudaEngine({.device_memory_bytes = int64_t{1} << 30});
    ASSERT_TRUE(engine.ok()) << engine.status();
    const ResultDifference difference =
        Compare(RunJob(engine->get(), scene, run), RunJob(MakeCpuEngine({.threads = 1}).get(), scene, run),
                *scene.image);
    Print("with data", difference);
    ExpectWithin(difference, limits);
  }
};

TEST_P(LittleSharedMemory, IsEnoughForUsualBins) {
  ExpectParity({.fibres = 12, .rows = 50}, {.grid = {6004, 0.8, 24}},
               {.pull = 1e-6, .sqrt_ivar = 1e-8, .resolution = 1e-8});
}

TEST_P(LittleSharedMemory, IsEnoughForFineBins) {
  ExpectParity({.fibres = 12, .rows = 56, .seed = 13}, {.grid = {6008, 0.4, 30}},
               {.pull = 1e-3, .sqrt_ivar = 1e-4, .resolution = 1e-4});
}

TEST_P(LittleSharedMemory, IsEnoughForLargeSpotsOfManyTerms) {
  Scene scene = MakeScene({.fibres = 3, .rows = 60});
  const auto psf = std::make_shared<Psf>(*scene.psf);
  GaussHermite(*psf).stamp = {CentredAxis(27), CentredAxis(18)};
  GaussHermite(*psf).core().max_degree_x = 9;
  GaussHermite(*psf).core().max_degree_y = 8;
  GaussHermiteTerm term = {9, 8, GaussHermite(*psf).core().terms.front().amplitude};
  for (int i = 0; i < term.amplitude.coeff.size(); ++i) term.amplitude.coeff.data()[i] *= 1e-5;
  GaussHermite(*psf).core().terms.push_back(term);
  scene.psf = psf;
  ExpectParity(scene, {.grid = {6012, 0.8, 12}}, {.pull = 1e-6, .sqrt_ivar = 1e-8, .resolution = 1e-8});
}

TEST_P(LittleSharedMemory, IsEnoughForTheLargestImages) {
  Scene scene = MakeScene({.fibres = 3, .rows = 60});
  const auto psf = std::make_shared<Psf>(*scene.psf);
  constexpr int kSide = kMaxStampSide - 1, kCentre = kSide / 2;
  SampledSpots spots;
  spots.layout.shift = SubpixelShift::kSinc;
  spots.layout.images = spots.layout.positions = spots.layout.wavelengths = 1;
  LayOutImages(kSide, kSide, 1, kCentre, kCentre, &spots.layout);
  std::vector<double> image;
  for (int row = 0; row < kSide; ++row) {
    for (int column = 0; column < kSide; ++column) {
      const double x = column - kCentre, y = row - kCentre;
      image.push_back(std::exp(-0.2 * (x * x + y * y)));
    }
  }
  Array<float, 2> stamps;
  stamps.Assign({1, spots.layout.stamp.pixels()});
  BinImage(image, kSide, kSide, spots.layout, absl::MakeSpan(stamps.data(), stamps.size()));
  spots.stamps = SharedArray<float, 2>(std::move(stamps));
  spots.fibres.resize(3);
  spots.positions = {0};
  spots.wavelengths = {6012};
  psf->spots = std::move(spots);
  scene.psf = psf;
  ExpectParity(scene, {.grid = {6012, 0.8, 12}}, {.pull = 1e-6, .sqrt_ivar = 1e-8, .resolution = 1e-8});
}

// The sizes for compute capability 8.6 and 12.0, and for an A100.
INSTANTIATE_TEST_SUITE_P(KiB, LittleSharedMemory, ::testing::Values(99, 163));

}  // namespace
}  // namespace spexd::testing
