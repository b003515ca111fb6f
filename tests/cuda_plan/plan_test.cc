// How frames are spread over a device, checked without one.
#include <algorithm>
#include <cstring>
#include <vector>

#include "cuda/plan/extract_plan.h"
#include "cuda/plan/job_layout.h"
#include "cuda/plan/psf_layout.h"
#include "cuda/plan/psf_shape.h"
#include "gtest/gtest.h"
#include "tests/support/scene.h"

namespace spexd::cuda {
namespace {

// A frame of the usual proportions: 500 fibres, 2326 bins of 0.8 Angstrom.
PsfShape FrameShape() {
  PsfShape shape;
  shape.fibres = 500;
  shape.pad = 12;
  shape.bins = 2326 + 2 * shape.pad;
  shape.first_wave = 5750.4;
  shape.step = 0.8;
  shape.ccd_rows = 4128;
  shape.ccd_columns = 4114;
  shape.half_x = 8;
  shape.half_y = 5;
  shape.degree_x = shape.degree_y = 6;
  shape.terms = 49;
  shape.coefficients = 8;
  shape.bundle_size = 25;
  return shape;
}

std::vector<BundleFacts> Facts(int bundles, int reach, int fibre_reach = 2) {
  std::vector<BundleFacts> facts;
  for (int b = 0; b < bundles; ++b) facts.push_back({reach, fibre_reach, 200 * b, 200 * b + 210});
  return facts;
}

TEST(ExtractPlan, CoversEveryFibreOnceAndEveryBinOnce) {
  const ExtractPlan plan = MakeExtractPlan(FrameShape(), Facts(20, 8), 1, {});
  std::vector<int> kept(500, 0);
  for (const GroupPlan& g : plan.groups) {
    EXPECT_LE(g.first_solved, g.first_kept);
    EXPECT_GE(g.first_solved + g.solved, g.first_kept + g.kept);
    for (int i = 0; i < g.kept; ++i) ++kept[g.first_kept + i];
  }
  EXPECT_EQ(std::count(kept.begin(), kept.end(), 1), 500);
  for (const ChunkPlan& chunks : {plan.solve, plan.roots}) {
    EXPECT_GE(chunks.count * chunks.bins, plan.shape.bins);
    EXPECT_LT((chunks.count - 1) * chunks.bins, plan.shape.bins);
  }
}

TEST(ExtractPlan, MakesHalosOfTenReachesOrWhatWidthsNeed) {
  const ExtractPlan plan = MakeExtractPlan(FrameShape(), Facts(20, 8), 1, {});
  EXPECT_GE(plan.roots.halo, 80);
  EXPECT_GE(plan.roots.halo, 2 * plan.most_width);
  EXPECT_GT(plan.roots.count, 1);
  EXPECT_LT(2 * plan.roots.halo, plan.roots.bins);
  EXPECT_GT(plan.solve.count, 1);
  EXPECT_LE(plan.solve.count, plan.roots.count);
}

TEST(ExtractPlan, DoesNotCutAShortGrid) {
  PsfShape shape = FrameShape();
  shape.bins = 90;
  const ExtractPlan plan = MakeExtractPlan(shape, Facts(20, 8), 1, {});
  EXPECT_EQ(plan.roots.count, 1);
  EXPECT_EQ(plan.roots.extended, 90);
}

TEST(ExtractPlan, DoesNotCutAFineGrid) {
  const ExtractPlan plan = MakeExtractPlan(FrameShape(), Facts(20, 22), 1, {.chunk_bins = 100});
  EXPECT_EQ(plan.solve.count, 1);
  EXPECT_EQ(plan.roots.count, 1);
}

TEST(ExtractPlan, ChunksAsAsked) {
  const ExtractPlan whole = MakeExtractPlan(FrameShape(), Facts(20, 8), 1, {.chunk_bins = 1 << 20});
  EXPECT_EQ(whole.solve.count, 1);
  EXPECT_EQ(whole.roots.count, 1);
  const ExtractPlan parts = MakeExtractPlan(FrameShape(), Facts(20, 8), 1, {.chunk_bins = 100});
  EXPECT_EQ(parts.solve.count, 24);
  EXPECT_EQ(parts.roots.count, 24);
}

TEST(ExtractPlan, TakesTheBandFromEachBundlesReach) {
  std::vector<BundleFacts> facts = Facts(20, 8);
  facts[3].reach = 9;
  const ExtractPlan plan = MakeExtractPlan(FrameShape(), facts, 1, {});
  for (const GroupPlan& g : plan.groups) {
    const int band = g.reach * g.solved + g.fibre_reach;
    EXPECT_EQ(g.band_tiles, (band + 7) / 8);
    EXPECT_EQ(g.reach, g.bundle == 3 ? 9 : 8);
  }
  EXPECT_EQ(plan.most_reach, 9);
}

TEST(ExtractPlan, TakesASingleFibreThatMeetsNobody) {
  PsfShape shape = FrameShape();
  shape.fibres = shape.bundle_size = 1;
  const ExtractPlan plan = MakeExtractPlan(shape, {{0, 0, 0, 17}}, 1, {});
  ASSERT_EQ(plan.groups.size(), 1u);
  EXPECT_EQ(plan.groups[0].band_tiles, 1);
  EXPECT_GT(plan.solve.bins, 0);
}

TEST(JobLayout, GrowsWithTheBundlesAskedFor) {
  const ExtractPlan plan = MakeExtractPlan(FrameShape(), Facts(20, 8), 1, {});
  JobShape job;
  job.float32 = true;
  job.bundles = 1;
  const JobLayout one = MakeJobLayout(plan, job, {});
  job.bundles = 20;
  const JobLayout all = MakeJobLayout(plan, job, {});
  EXPECT_LT(one.bytes, all.bytes);
  EXPECT_EQ(all.ivar, int64_t{4128} * 4114 * 4);
  // flux, ivar, mask, chi2pix and 11 diagonals of float32, with little between.
  EXPECT_NEAR(static_cast<double>(all.output_bytes), 500.0 * 2326 * 15 * 4, 2000);
  job.float32 = false;
  EXPECT_GT(MakeJobLayout(plan, job, {}).output_bytes, all.output_bytes);
}

TEST(PackedPsf, HoldsEverySeriesOfEveryFibre) {
  const auto psf = testing::MakeScenePsf({.fibres = 3, .rows = 60});
  const PsfShape shape = ShapeOf(*psf, {6006, 0.8, 20}, 3);
  EXPECT_EQ(shape.output_bins(), 20);
  std::vector<std::byte> packed(PackedPsfBytes(shape));
  PackPsf(*psf, shape, packed.data());
  const PsfLayout at = MakePsfLayout(shape);
  for (int i = 0; i < 3; ++i) {
    double first;
    const int64_t y = (static_cast<int64_t>(i) * shape.series() + 1) * shape.coefficients;
    std::memcpy(&first, packed.data() + at.coefficients + y * sizeof(double), sizeof(double));
    EXPECT_EQ(first, psf->y.coeff(i, 0));
  }
  EXPECT_EQ(at.first_column, static_cast<int64_t>(packed.size()));
}

}  // namespace
}  // namespace spexd::cuda
