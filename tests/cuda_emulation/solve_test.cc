// Conjugate gradients, with a preconditioner in chunks and in one piece.
#include <cstdio>
#include <random>

#include "core/model/tolerances.h"
#include "gtest/gtest.h"
#include "tests/cuda_emulation/job_in_memory.h"

namespace spexd::cuda {
namespace {

struct Solution {
  int steps = 0;
  double residual = 0;
};

// Runs a job until its flux is known.
Solution SolveIn(const ChunkPlan& chunks, JobInMemory* job) {
  job->plan.solve_chunks = chunks;
  EXPECT_EQ(job->Run([](Stage stage) { return stage == Stage::kSolve ? cudaErrorNotReady : cudaSuccess; }),
            cudaErrorNotReady);
  return {job->at.solve.states[0].steps, job->Result().residual};
}

class Preconditioner : public ::testing::TestWithParam<unsigned> {};

// Random bundles, grids and holes; in some the ends of the grid lie off the CCD. Chunks are shorter than a
// frame's, with the same halos.
TEST_P(Preconditioner, TakesHardlyMoreStepsInChunks) {
  std::mt19937 random(GetParam());
  const auto pick = [&](int least, int most) {
    return least + static_cast<int>(random() % static_cast<unsigned>(most - least + 1));
  };
  const double step = pick(4, 8) / 10.0;
  const int bins = pick(260, 360), fibres = pick(1, 3),
            rows = static_cast<int>(bins * step / 0.6) + pick(5, 40);
  const testing::Scene scene = testing::MakeScene({.fibres = fibres,
                                                   .rows = rows,
                                                   .widen = step > 0.65 && pick(0, 1) == 0 ? 1.7 : 1,
                                                   .tail = pick(0, 3) == 0,
                                                   .seed = GetParam()});
  for (int hole = pick(0, 3); hole > 0; --hole) {
    const int row = pick(0, rows), column = pick(0, 8 * fibres), height = pick(1, 30), width = pick(1, 18);
    testing::MaskPixels(row, height, column, width, scene.image.get());
  }
  JobInMemory job(scene, {6000.0 + pick(-4, 8), step, bins});

  const int size = job.plan.shape.bins;
  ChunkPlan chunks = job.plan.solve_chunks;
  chunks.kept = RoundedUp(chunks.halo, 2 * kTile);
  chunks.count = (size + chunks.kept - 1) / chunks.kept;
  chunks.extended = chunks.kept + 2 * chunks.halo;
  ASSERT_GT(chunks.count, 1);
  const Solution whole = SolveIn({1, size, 0, RoundedUp(size, kTile)}, &job), cut = SolveIn(chunks, &job);
  std::printf("  seed %u: %d fibres in blocks of %d, %d bins of %.1f Angstrom, reach %d: ", GetParam(),
              fibres, job.plan.block_fibres, size, step, job.plan.reach);
  std::printf("%d chunks, %d steps, in one %d; residual %.2g\n", chunks.count, cut.steps, whole.steps,
              cut.residual);
  EXPECT_GT(whole.steps, 0);
  EXPECT_GT(cut.steps, 0);
  EXPECT_LE(cut.steps, whole.steps + 2);
  EXPECT_LT(cut.residual, 2 * kFluxResidual);
}

// The preconditioner is positive definite however little of its neighbours a chunk knows.
TEST(PreconditionerInShortChunks, FindsTheFluxWithoutHalos) {
  JobInMemory job(testing::MakeScene({.fibres = 3, .rows = 90}), {6004, 0.8, 60});
  const Solution cut = SolveIn({6, 16, 0, 16}, &job);
  EXPECT_GT(cut.steps, 8);
  EXPECT_LT(cut.residual, 2 * kFluxResidual);
}

INSTANTIATE_TEST_SUITE_P(Seeds, Preconditioner, ::testing::Range(1u, 13u));

}  // namespace
}  // namespace spexd::cuda
