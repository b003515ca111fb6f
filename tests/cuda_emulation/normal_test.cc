// The kernels of the stage "normal", called directly: the matrix, and what is left out of it, are those of
// the CPU engine.
#include "core/extract/cpu/stages/normal.h"

#include <algorithm>
#include <cstddef>
#include <memory>
#include <vector>

#include "core/extract/product_bound.h"
#include "core/plan/grid_plan.h"
#include "cuda/kernels/normal.h"
#include "cuda/kernels/psf_kernels.h"
#include "cuda/plan/extract_plan.h"
#include "gtest/gtest.h"
#include "tests/support/scenes/scene.h"

namespace spexd::cuda {
namespace {

constexpr int kShared = 99 << 10;

// Returns the number of pairs of fibres whose products are left out.
int CompareEngines(const testing::SceneOptions& options, const WavelengthGrid& grid, bool hole) {
  const std::shared_ptr<Psf> psf = testing::MakeScenePsf(options);
  const std::shared_ptr<Image> image = testing::MakeSceneImage(*psf, options);
  if (hole) {  // in the first fibre, but for the faint columns that the third shares
    const int centre = static_cast<int>(Evaluate(psf->x, 0, grid.first));
    testing::MaskPixels(15, 25, 0, centre + 5, image.get());
  }

  const PsfShape shape = ShapeOf(*psf, grid, options.fibres);
  std::vector<std::byte> resident(static_cast<size_t>(PsfBytes(shape)), std::byte{0xff});
  PackPsf(*psf, shape, resident.data());
  const PsfArrays arrays = LayOutPsf(shape, resident.data());
  EXPECT_EQ(ConfigureSpots(kShared), cudaSuccess);
  EXPECT_EQ(LocateSpots(arrays, nullptr), cudaSuccess);
  EXPECT_EQ(EvaluateSpots(arrays, kShared, nullptr), cudaSuccess);
  const ExtractPlan plan = MakeExtractPlan(shape, {arrays.facts[0]}, 1, {});
  const JobShape job = {.first_bundle = 0, .bundles = 1};
  std::vector<std::byte> workspace(static_cast<size_t>(LayOutJob(plan, job, {}, nullptr).bytes));
  const JobArrays at = LayOutJob(plan, job, {}, workspace.data());
  std::copy(image->pixels.flat().begin(), image->pixels.flat().end(), at.image.pixels);
  std::copy(image->ivar.flat().begin(), image->ivar.flat().end(), at.image.ivar);
  const NormalArrays& device = at.normal;
  EXPECT_EQ(
      ComputeNormal({arrays, at.fibres, at.image, 0, LeavesProductsOut(plan.reach, 1), device}, nullptr),
      cudaSuccess);

  const WavelengthGrid padded = Padded(grid, shape.pad);
  BundlePlan bundle = MakeBundlePlan(*psf, padded, shape.pad, {0, options.fibres}).value();
  bundle.block = 1;
  cpu::Spots spots;
  cpu::BundleImage pixels;
  cpu::NormalEquations host;
  EXPECT_TRUE(spots.Evaluate(*psf, padded, bundle.fibres));
  pixels.Load(PlanesOf(*image), *psf, bundle);
  EXPECT_TRUE(host.Compute(bundle, spots, pixels, {0, shape.fine_grid}, {}));

  EXPECT_EQ(plan.reach, bundle.reach);
  const int fibres = options.fibres, bins = shape.bins, reach = plan.reach;
  int left_out = 0;
  for (int apart = 1; apart <= bundle.fibre_reach; ++apart) {
    for (int i = 0; i + apart < fibres; ++i) {
      EXPECT_EQ(device.coupled[(apart - 1) * fibres + i] != 0, host.IsCoupled(i, apart)) << i << " " << apart;
      if (!host.IsCoupled(i, apart)) {
        ++left_out;
        continue;
      }
      for (int k = -reach; k <= reach; ++k) {
        const int64_t row = (int64_t{apart - 1} * fibres + i) * (2 * reach + 1) + k + reach;
        for (int j = std::max(0, -k); j < bins - std::max(0, k); ++j)
          EXPECT_NEAR(device.between[row * bins + j], host.Pair(i, apart, k)[j], 1e-15) << i << " " << j;
      }
    }
  }
  return left_out;
}

TEST(NormalStage, LeavesFibresTwoApartOut) {
  EXPECT_EQ(CompareEngines({.fibres = 5, .rows = 60}, {6004, 0.8, 30}, false), 3);
}

TEST(NormalStage, KeepsThemBesideAHole) {
  EXPECT_EQ(CompareEngines({.fibres = 5, .rows = 60, .widen = 1.3}, {6004, 0.8, 30}, false), 3);
  EXPECT_EQ(CompareEngines({.fibres = 5, .rows = 60, .widen = 1.3}, {6004, 0.8, 30}, true), 2);
}

TEST(NormalStage, KeepsThemOfAWidePsf) {
  EXPECT_EQ(CompareEngines({.fibres = 5, .rows = 60, .widen = 1.5}, {6004, 0.8, 30}, false), 0);
}

TEST(NormalStage, KeepsThemOnAFineGrid) {
  EXPECT_EQ(CompareEngines({.fibres = 4, .rows = 50}, {6008, 0.4, 20}, false), 0);
}

}  // namespace
}  // namespace spexd::cuda
