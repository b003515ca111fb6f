// Damages the inputs of the square roots in the middle of a job; the root error shows it.
#include <algorithm>
#include <cmath>
#include <functional>

#include "core/extract/pole_formula.h"
#include "core/model/tolerances.h"
#include "gtest/gtest.h"
#include "tests/cuda_emulation/job_in_memory.h"

namespace spexd::cuda {
namespace {

constexpr int kFibre = 1, kBin = 20;

class DamagedJob : public ::testing::Test {
 protected:
  using Damage = std::function<void(const JobArrays& at)>;

  // Runs the job. `before` changes the arrays before the square roots are planned, `after` changes them
  // afterwards.
  BundleResult Run(const Damage& before, const Damage& after = {}) {
    JobInMemory job(testing::MakeScene({.fibres = 3, .rows = 60}), {6004, 0.8, 37});
    const auto enqueued = [&](Stage stage) {
      if (stage == Stage::kSolve && before) before(job.at);
      if (stage == Stage::kResolution && after) after(job.at);
      return cudaSuccess;
    };
    EXPECT_EQ(job.Run(enqueued), cudaSuccess);
    EXPECT_EQ(job.at.fibres.fibres, 3);
    return job.Result();
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
  // Uses poles of a spectrum that ends at a third of the entry on P's diagonal.
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
  EXPECT_GT(damaged.root_error, kMaxRootError);
}

// Poles of the smaller half of shifts affect modes that contribute little to the sums.
TEST_F(DamagedJob, ShowsAWrongPole) {
  int poles = 0;
  Run([&](const JobArrays& at) { poles = at.resolution.poles[kFibre]; });
  for (int pole = poles / 2; pole < poles; pole += 4) {
    const BundleResult damaged = Run([&](const JobArrays& at) { *Shift(at, pole) *= 1.01; });
    EXPECT_GT(damaged.root_error, kMaxRootError) << "pole " << pole << " of " << poles;
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
  EXPECT_GT(damaged.root_error, kMaxRootError);
}

}  // namespace
}  // namespace spexd::cuda
