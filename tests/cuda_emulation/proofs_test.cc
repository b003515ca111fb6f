// Damage to what the square roots are made of, in the middle of a job: the root error shows it.
#include <cmath>
#include <cstddef>
#include <functional>
#include <vector>

#include "core/extract/pole_formula.h"
#include "core/model/tolerances.h"
#include "cuda/kernels/factor/factor.h"
#include "cuda/plan/extract_plan.h"
#include "cuda/plan/job_arrays.h"
#include "cuda/plan/psf_shape.h"
#include "cuda/plan/tile.h"
#include "cuda/runtime/job_slot.h"
#include "cuda/runtime/pipeline.h"
#include "gtest/gtest.h"
#include "tests/cuda_runtime/fake_cuda.h"
#include "tests/support/scenes/engine_runs.h"

namespace spexd::cuda {
namespace {

constexpr int kFibre = 1, kBin = 20;

// A job of one bundle, in memory that a test can reach between its stages.
class DamagedJob : public ::testing::Test {
 protected:
  using Damage = std::function<void(const JobArrays& at)>;

  // Runs the job: `before` the square roots, which then are planned, and `after` them the arrays are changed.
  BundleResult Run(const Damage& before, const Damage& after = {}) {
    testing::FakeCuda::Device device;
    device.free_bytes = size_t{1} << 30;
    testing::FakeCuda::Get().Reset({device});
    EXPECT_EQ(ConfigureKernels(kMostShared), cudaSuccess);
    JobSlot slot;
    EXPECT_EQ(slot.Make(0), cudaSuccess);
    cudaStream_t const stream = slot.stream.get();

    const testing::Scene scene = testing::MakeScene({.fibres = 3, .rows = 60});
    const PsfShape shape = ShapeOf(*scene.psf, {6004, 0.8, 37}, 25);
    std::vector<double> resident(ResidentBytes(shape) / sizeof(double) + 1);
    std::byte* const psf = reinterpret_cast<std::byte*>(resident.data());
    PackPsf(*scene.psf, shape, psf);
    std::vector<BundleFacts> facts(static_cast<size_t>(shape.bundles()));
    EXPECT_EQ(EnqueueLocate(shape, psf, facts.data(), stream), cudaSuccess);
    const ExtractPlan plan = MakeExtractPlan(shape, facts, 1, {});
    EXPECT_EQ(EnqueueSpots(plan, psf, stream), cudaSuccess);

    JobShape job;
    job.bundles = 1;
    std::vector<double> workspace(WorkspaceBytes(plan, job) / sizeof(double) + 1);
    std::byte* const memory = reinterpret_cast<std::byte*>(workspace.data());
    const size_t pixels = static_cast<size_t>(scene.image->pixels.size());
    float* const image = reinterpret_cast<float*>(memory);
    std::copy_n(scene.image->pixels.data(), pixels, image);
    std::copy_n(scene.image->ivar.data(), pixels, image + pixels);
    // No window of this job's factors exceeds shared memory, so that they have no scratch.
    EXPECT_EQ(FactorScratch(TilesOf(plan.most_width) + 1, TilesOf(shape.bins), kMostShared), 0);
    const JobArrays at = LayOutJob(plan, job, {}, memory);
    EXPECT_EQ(at.fibres.fibres, 3);
    const auto enqueued = [&](Stage stage) {
      if (stage == Stage::kSolve && before) before(at);
      if (stage == Stage::kResolution && after) after(at);
      return cudaSuccess;
    };
    EXPECT_EQ(EnqueueExtract(plan, job, psf, memory, slot.streams(), enqueued), cudaSuccess);
    return UnpackBundle(plan, job, memory + OutputOffset(plan, job), 0);
  }

  static double* Entry(const JobArrays& at, int k) {
    return at.precision.values + (int64_t{kFibre} * at.precision.diagonals + k) * at.precision.size + kBin;
  }
  static double* Shift(const JobArrays& at, int pole) {
    return at.resolution.pole_shift + kFibre * kMaxPoles + pole;
  }
};

TEST_F(DamagedJob, HasALargeErrorOnlyIfItWasDamaged) {
  const BundleResult sound = Run({});
  EXPECT_LT(sound.residual, kFluxResidual * 10);
  EXPECT_GT(sound.root_error, 0);
  EXPECT_LT(sound.root_error, 1e-9);
}

TEST_F(DamagedJob, ShowsAWrongBoundOfTheSpectrum) {
  // Poles of a spectrum that ends at a third of the entry on P's diagonal.
  const BundleResult damaged = Run([](const JobArrays& at) {
    constexpr int kPoles = kPoleGroup;
    const double most = *Entry(at, 0) / 3;
    const PoleFormula formula(most / 2, most, kPoles);
    double total = 0;
    for (int k = 0; k < kMaxPoles; ++k) {
      const Pole pole = formula.At(std::min(k, kPoles - 1));
      const double weight = k < kPoles ? pole.weight : 0;
      *Shift(at, k) = pole.shift;
      at.resolution.pole_weight[kFibre * kMaxPoles + k] = weight * pole.shift;
      total += weight;
    }
    at.resolution.pole_total[kFibre] = total;
  });
  EXPECT_GT(damaged.root_error, kMostRootError);
}

// Poles of the smaller half of shifts matter to modes that hold hardly any of the sums.
TEST_F(DamagedJob, ShowsAWrongPole) {
  int poles = 0;
  Run([&](const JobArrays& at) { poles = at.resolution.poles[kFibre]; });
  for (int pole = poles / 2; pole < poles; pole += 4) {
    const BundleResult damaged = Run([&](const JobArrays& at) { *Shift(at, pole) *= 1.01; });
    EXPECT_GT(damaged.root_error, kMostRootError) << "pole " << pole << " of " << poles;
  }
}

TEST_F(DamagedJob, HasNoProofIfAPoleIsNotANumber) {
  EXPECT_TRUE(std::isnan(Run([](const JobArrays& at) { *Shift(at, 5) = NAN; }).root_error));
}

TEST_F(DamagedJob, ShowsAWrongEntryOfTheBand) {
  double right = 0;
  const BundleResult damaged = Run(
      [&](const JobArrays& at) {
        right = *Entry(at, 1);
        *Entry(at, 1) *= 0.99;
      },
      [&](const JobArrays& at) { *Entry(at, 1) = right; });
  EXPECT_GT(damaged.root_error, kMostRootError);
}

}  // namespace
}  // namespace spexd::cuda
