// Plans for dividing frames on a device, checked without a device.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <tuple>
#include <utility>
#include <variant>
#include <vector>

#include "absl/types/span.h"
#include "core/extract/pole_formula.h"
#include "core/model/frame.h"
#include "core/model/tolerances.h"
#include "cuda/memory/carver.h"
#include "cuda/plan/coded_block.h"
#include "cuda/plan/extract_plan.h"
#include "cuda/plan/job_arrays.h"
#include "cuda/plan/psf_arrays.h"
#include "cuda/plan/psf_shape.h"
#include "cuda/plan/spots/spot_model.h"
#include "cuda/plan/tile.h"
#include "gtest/gtest.h"
#include "tests/support/scenes/scene.h"

namespace spexd::cuda {
namespace {

// Returns a frame of the usual size: 500 fibres, 2326 bins of 0.8 Angstrom.
PsfShape FrameShape() {
  PsfShape shape;
  shape.fibres = 500;
  shape.pad = 12;
  shape.bins = 2326 + 2 * shape.pad;
  shape.first_wave = 5750.4;
  shape.step = 0.8;
  shape.ccd_rows = 4128;
  shape.ccd_columns = 4114;
  shape.stamp = {CentredAxis(8), CentredAxis(5)};
  shape.traces = {2, 8};
  shape.model = GaussHermiteShape{.degree = 6, .terms = 49, .series = {51, 8}};
  shape.bundle_size = 25;
  return shape;
}

std::vector<BundleFacts> Facts(int bundles, int reach, int fibre_reach = 1) {
  std::vector<BundleFacts> facts;
  for (int b = 0; b < bundles; ++b) facts.push_back({reach, fibre_reach, 200 * b, 200 * b + 210});
  return facts;
}

ExtractPlan FramePlan(int reach, const PlanOptions& options = {}) {
  return MakeExtractPlan(FrameShape(), Facts(20, reach), 1, options);
}

JobShape Job(int first_bundle, int bundles) {
  JobShape job;
  job.first_bundle = first_bundle;
  job.bundles = bundles;
  job.float32 = true;
  return job;
}

// ---- Chunks.

TEST(ExtractPlan, KeepsEveryBinInOneChunk) {
  for (const int block_fibres : {1, 2}) {
    const ExtractPlan plan = MakeExtractPlan(FrameShape(), Facts(20, 8), block_fibres, {});
    for (const auto& [chunks, size] : {std::pair{plan.root_chunks, plan.shape.bins},
                                       std::pair{plan.block_chunks, plan.shape.bins * block_fibres}}) {
      EXPECT_GT(chunks.count, 1);
      EXPECT_GE(chunks.count * chunks.kept, size);
      EXPECT_LT((chunks.count - 1) * chunks.kept, size);
      EXPECT_EQ(chunks.ChunkOf(size - 1), chunks.count - 1);
    }
  }
}

TEST(ExtractPlan, CutsAtWholePairsOfTiles) {
  for (const int chunk_bins : {0, 65, 100, 333}) {
    const ExtractPlan plan = FramePlan(8, {.chunk_bins = chunk_bins});
    EXPECT_EQ(plan.root_chunks.kept % (2 * kTile), 0);
    EXPECT_EQ(plan.root_chunks.halo % kTile, 0);
    EXPECT_EQ(plan.root_chunks.extended % kTile, 0);
  }
}

TEST(ExtractPlan, MakesHalosOfManyReachesThatAreLessThanWhatIsKept) {
  for (const int reach : {8, 9, 10}) {
    const ExtractPlan plan = FramePlan(reach);
    EXPECT_GE(plan.block_chunks.halo, 12 * reach);
    EXPECT_GE(plan.root_chunks.halo, (reach < 10 ? 8 : 12) * reach);
    for (const ChunkPlan& chunks : {plan.root_chunks, plan.block_chunks}) {
      EXPECT_GE(chunks.halo, plan.max_width);
      EXPECT_GE(chunks.kept, 5 * chunks.halo);
      EXPECT_EQ(chunks.extended, chunks.kept + 2 * chunks.halo);
    }
  }
}

TEST(ExtractPlan, CutsBlocksInProportionToTheirFibres) {
  const ExtractPlan plan = MakeExtractPlan(FrameShape(), Facts(20, 8), 3, {});
  EXPECT_EQ(plan.block_fibres, 3);
  EXPECT_EQ(plan.block_chunks.count, FramePlan(8).block_chunks.count);
  EXPECT_GE(plan.block_chunks.halo, 3 * 12 * 8);
}

TEST(ExtractPlan, DoesNotCutAShortGrid) {
  PsfShape shape = FrameShape();
  shape.bins = 90;
  const ExtractPlan plan = MakeExtractPlan(shape, Facts(20, 8), 1, {});
  EXPECT_EQ(plan.root_chunks.count, 1);
  EXPECT_EQ(plan.root_chunks.extended, 96);
}

TEST(ExtractPlan, CutsNoFineGrid) {
  EXPECT_GT(FramePlan(kFineReach - 1, {.chunk_bins = 100}).root_chunks.count, 1);
  for (const int reach : {kFineReach, 22}) {
    const ExtractPlan plan = FramePlan(reach, {.chunk_bins = 100});
    for (const ChunkPlan& chunks : {plan.root_chunks, plan.block_chunks, plan.side_chunks})
      EXPECT_EQ(chunks.count, 1);
  }
}

// All other chunks wait for the preconditioner's chains.
TEST(ExtractPlan, PreconditionsTheFluxByShorterChunksWhateverTheOthersAre) {
  const ExtractPlan plan = FramePlan(9, {});
  EXPECT_LE(3 * plan.solve_chunks.extended, plan.block_chunks.extended);
  EXPECT_EQ(FramePlan(9, {.chunk_bins = 1 << 20}).solve_chunks.count, plan.solve_chunks.count);
  for (const int reach : {1, 9, 11, 18, 150}) {
    const ChunkPlan chunks = FramePlan(reach).solve_chunks;
    EXPECT_GE(chunks.halo, reach) << "a bin meets all that couple to it";
    EXPECT_LE(chunks.halo, chunks.kept) << "a bin is in no more than two chunks";
    EXPECT_GE(chunks.count * chunks.kept, plan.shape.bins);
    // The chunks of a block's four warps fit into the shared memory of any device.
    EXPECT_LE(4 * 8 * chunks.extended, 99 * 1024);
  }
}

TEST(ExtractPlan, ChunksAsAsked) {
  EXPECT_EQ(FramePlan(8, {.chunk_bins = 1 << 20}).root_chunks.count, 1);
  EXPECT_EQ(FramePlan(8, {.chunk_bins = 2350}).root_chunks.count, 1);
  const ExtractPlan parts = FramePlan(8, {.chunk_bins = 100});
  EXPECT_EQ(parts.root_chunks.kept, 112);
  EXPECT_EQ(parts.root_chunks.count, 21);
  EXPECT_EQ(parts.block_chunks.count, 21);
}

TEST(ExtractPlan, MakesNoChunkShorterThanABandIsWide) {
  const ExtractPlan plan = FramePlan(8, {.chunk_bins = 1});
  EXPECT_GT(plan.root_chunks.count, 1);
  EXPECT_GE(plan.root_chunks.kept, plan.max_width);
}

// ---- Bands.

TEST(ExtractPlan, TakesTheMostThatAnyBundleReaches) {
  std::vector<BundleFacts> facts = Facts(20, 8);
  facts[3].reach = 9;
  facts[5].fibre_reach = 2;
  const ExtractPlan plan = MakeExtractPlan(FrameShape(), facts, 1, {});
  EXPECT_EQ(plan.reach, 9);
  EXPECT_EQ(plan.fibre_reach, 2);
  EXPECT_EQ(plan.usual_width, FramePlan(9).usual_width);
  EXPECT_GT(plan.usual_width, FramePlan(8).usual_width);
}

TEST(ExtractPlan, KeepsAtLeastWhatTheResolutionNeedsAndTheNarrowRootsRead) {
  for (const int reach : {0, 1, 4, 8, 12, 22}) {
    const ExtractPlan plan = FramePlan(reach);
    EXPECT_GT(plan.usual_width, kResolutionHalfWidth);
    EXPECT_GE(plan.max_width, plan.usual_width);
    EXPECT_GE(plan.max_width, 13);
    EXPECT_GE(plan.side_width, plan.reach);
    EXPECT_LE(plan.side_width, plan.max_width);
  }
}

TEST(ExtractPlan, HandsAllOnWhereGridsAreFineOrBlocksHaveSeveralFibres) {
  EXPECT_LT(FramePlan(8).side_width, FramePlan(8).max_width);
  EXPECT_EQ(FramePlan(22).side_width, FramePlan(22).max_width);
  const ExtractPlan blocks = MakeExtractPlan(FrameShape(), Facts(20, 8), 2, {});
  EXPECT_EQ(blocks.side_width, blocks.max_width);
}

TEST(ExtractPlan, GoesThroughAllBlocksOfABundleWhereTheyHaveSeveralFibres) {
  EXPECT_LT(FramePlan(8).rounds, 25);
  EXPECT_EQ(MakeExtractPlan(FrameShape(), Facts(20, 8), 2, {}).rounds, 13);
}

// ---- Blocks of fibres.

TEST(ExtractPlan, PutsEveryFibreOfAJobInOneBlock) {
  PsfShape shape = FrameShape();
  shape.fibres = 490;  // the last bundle has 15
  for (const int block_fibres : {1, 2, 4}) {
    const ExtractPlan plan = MakeExtractPlan(shape, Facts(20, 8), block_fibres, {});
    const auto blocks_of = [&](int bundle_fibres) {
      return (bundle_fibres + block_fibres - 1) / block_fibres;
    };
    EXPECT_EQ(FibresOf(plan, Job(0, 20)), 490);
    EXPECT_EQ(FibresOf(plan, Job(18, 2)), 40);
    EXPECT_EQ(FibresOf(plan, Job(4, 1)), 25);
    const BlockPlan all = BlocksOf(plan, Job(0, 20));
    EXPECT_EQ(all.fibres, block_fibres);
    EXPECT_EQ(all.per_bundle, blocks_of(25));
    EXPECT_EQ(all.count, 19 * blocks_of(25) + blocks_of(15));
    EXPECT_EQ(all.size, shape.bins * block_fibres);
    EXPECT_EQ(all.reach, 8 * block_fibres + block_fibres - 1);
    EXPECT_EQ(BlocksOf(plan, Job(19, 1)).count, blocks_of(15));
  }
}

TEST(ExtractPlan, TakesNoLargerBlockThanABundle) {
  PsfShape shape = FrameShape();
  shape.bundle_size = 3;
  shape.fibres = 6;
  EXPECT_EQ(MakeExtractPlan(shape, Facts(2, 8), 25, {}).block_fibres, 3);
}

TEST(ExtractPlan, GivesASingleFibreThatMeetsNobodyNoNeighbour) {
  PsfShape shape = FrameShape();
  shape.fibres = shape.bundle_size = 1;
  const ExtractPlan plan = MakeExtractPlan(shape, {{0, 0, 0, 17}}, 1, {});
  const BlockPlan blocks = BlocksOf(plan, Job(0, 1));
  EXPECT_EQ(blocks.count, 1);
  EXPECT_EQ(blocks.per_bundle, 1);
  EXPECT_EQ(blocks.reach, 0);
  EXPECT_GT(plan.root_chunks.kept, 0);
}

TEST(ExtractPlan, GivesFibresThatMeetNobodyNoNeighbours) {
  const ExtractPlan plan = MakeExtractPlan(FrameShape(), Facts(20, 8, 0), 1, {});
  const BlockPlan blocks = BlocksOf(plan, Job(0, 20));
  EXPECT_EQ(blocks.count, 500);
  EXPECT_EQ(blocks.per_bundle, 1);
}

TEST(ExtractPlan, TakesTheWindowsOfAJobsBundles) {
  std::vector<BundleFacts> facts = Facts(20, 8);
  facts[6] = {8, 1, 900, 890};  // this bundle touches no column
  const std::vector<Window> windows = WindowsOf(MakeExtractPlan(FrameShape(), facts, 1, {}), Job(5, 3));
  ASSERT_EQ(windows.size(), 3u);
  EXPECT_EQ(windows[0].first_column, 1000);
  EXPECT_EQ(windows[0].columns, 210);
  EXPECT_EQ(windows[1].columns, 0);
  EXPECT_EQ(windows[2].first_column, 1400);
}

// ---- Arrays.

TEST(Carver, CountsWithoutABlockWhatItTakesOfOne) {
  alignas(kArrayAlignment) std::byte block[4 * kArrayAlignment];
  Carver counted(nullptr), carved(block);
  for (Carver* carver : {&counted, &carved}) {
    carver->Take<double>(1);
    carver->Take<char>(kArrayAlignment + 1);
  }
  EXPECT_EQ(counted.bytes(), 3 * kArrayAlignment);
  EXPECT_EQ(carved.bytes(), counted.bytes());
  EXPECT_EQ(counted.Take<double>(1), nullptr);
  EXPECT_EQ(carved.Take<std::byte>(1), block + 3 * kArrayAlignment);
}

TEST(Carver, RemembersTheMostAfterRewinding) {
  Carver carver(nullptr);
  carver.Take<char>(1);
  const int64_t end = carver.end();
  carver.Take<char>(10 * kArrayAlignment);
  carver.Rewind(end);
  carver.Take<char>(1);
  EXPECT_EQ(carver.end(), 2 * kArrayAlignment);
  EXPECT_EQ(carver.bytes(), 11 * kArrayAlignment);
}

// The arrays of a job as [begin, end) in address space only. Nothing is accessed.
class Extents {
 public:
  template <typename T>
  void Add(const char* name, const T* array, int64_t count) {
    const auto begin = reinterpret_cast<uintptr_t>(array);
    EXPECT_NE(array, nullptr) << name;
    EXPECT_EQ(begin % kArrayAlignment, 0u) << name;
    all_.push_back({begin, begin + static_cast<uintptr_t>(count) * sizeof(T), name});
  }
  void Add(const char* name, const BandArrays& bands, int64_t matrices) {
    Add(name, bands.values, matrices * bands.diagonals * bands.size);
    Add(name, bands.widths, matrices * bands.size);
  }
  void Add(const char* name, const FactorArrays& factors, int64_t matrices, int chunks) {
    Add(name, factors.values, matrices * factors.columns * (1 + factors.tiles) * kTileSize);
    Add(name, factors.depths, matrices * chunks);
    Add(name, factors.ends, matrices * factors.columns);
    Add(name, factors.starts, matrices * factors.columns);
  }
  void ExpectApartWithin(uintptr_t begin, int64_t bytes) {
    std::sort(all_.begin(), all_.end());
    uintptr_t last_end = begin;
    const char* last_name = "the block's begin";
    for (const auto& [first, end, name] : all_) {
      EXPECT_GE(first, last_end) << name << " overlaps " << last_name;
      last_end = end;
      last_name = name;
    }
    EXPECT_LE(last_end, begin + static_cast<uintptr_t>(bytes));
  }

 private:
  std::vector<std::tuple<uintptr_t, uintptr_t, const char*>> all_;  // begin, end, name
};

// An address at which arrays can be laid out.
constexpr uintptr_t kSomewhere = uintptr_t{1} << 40;
std::byte* Somewhere() { return reinterpret_cast<std::byte*>(kSomewhere); }

TEST(JobArrays, GrowWithTheBundlesAskedFor) {
  const ExtractPlan plan = FramePlan(8);
  const JobArrays one = LayOutJob(plan, Job(0, 1), {}, nullptr),
                  all = LayOutJob(plan, Job(0, 20), {}, nullptr);
  EXPECT_LT(one.bytes, all.bytes);
  EXPECT_EQ(one.output.bundle_bytes, all.output.bundle_bytes);
  EXPECT_EQ(all.output_bytes, 20 * one.output_bytes);
}

TEST(JobArrays, ResultsTakeWhatTheyHoldAndLittleMore) {
  const ExtractPlan plan = FramePlan(8);
  JobShape job = Job(0, 20);
  const JobArrays all = LayOutJob(plan, job, {}, nullptr);
  // flux, ivar, mask, chi2pix and 11 diagonals of float32.
  EXPECT_NEAR(static_cast<double>(all.output.bundle_bytes), 25.0 * 2326 * 15 * 4, 7 * kArrayAlignment);
  job.float32 = false;
  EXPECT_GT(LayOutJob(plan, job, {}, nullptr).output_bytes, all.output_bytes);
  job.float32 = job.want_model = true;
  const JobArrays modelled = LayOutJob(plan, job, {}, nullptr);
  EXPECT_EQ(modelled.output.bundle_bytes,
            all.output.bundle_bytes + (int64_t{4128} * 210 * 4 + 255) / 256 * 256);
}

TEST(JobArrays, HaveEachBundlesResultInOnePiece) {
  JobShape job = Job(2, 3);
  job.want_model = true;
  for (const bool float32 : {true, false}) {
    job.float32 = float32;
    const OutputArrays output = LayOutJob(FramePlan(8), job, {}, nullptr).output;
    const int64_t values = int64_t{25} * 2326, real = float32 ? 4 : 8;
    const std::vector<std::pair<int64_t, int64_t>> arrays = {{output.residual, 8},
                                                             {output.root_error, 8},
                                                             {output.flux, values * real},
                                                             {output.ivar, values * real},
                                                             {output.chi2pix, values * real},
                                                             {output.mask, values * 4},
                                                             {output.resolution, values * 11 * real},
                                                             {output.pixmask, float32 ? 0 : values * real},
                                                             {output.model, int64_t{4128} * 210 * 4}};
    int64_t end = 0;
    for (const auto& [at, bytes] : arrays) {
      EXPECT_EQ(at, (end + kArrayAlignment - 1) / kArrayAlignment * kArrayAlignment);
      end = at + bytes;
    }
    EXPECT_LE(end, output.bundle_bytes);
  }
}

TEST(JobArrays, AreAsLargeWithABlockAsWithout) {
  const ExtractPlan plan = FramePlan(8);
  const ScratchSizes scratch = {1000, 2000, 3000};
  const JobArrays counted = LayOutJob(plan, Job(0, 2), scratch, nullptr),
                  laid_out = LayOutJob(plan, Job(0, 2), scratch, Somewhere());
  EXPECT_EQ(counted.bytes, laid_out.bytes);
  EXPECT_EQ(counted.output_offset, laid_out.output_offset);
  EXPECT_EQ(laid_out.output.bundles, Somewhere() + laid_out.output_offset);
  EXPECT_EQ(counted.image.pixels, nullptr);
  EXPECT_EQ(counted.image.ivar, nullptr);
}

TEST(JobFibres, AreFoundByTheirPlaceInABlock) {
  const JobFibres fibres = {0, 2, 0, 12, 7, 3};  // bundles of 7 and 5 fibres, in blocks of 3
  for (int fibre = 0; fibre < 12; ++fibre) {
    EXPECT_EQ(fibres.FibreOf(fibres.BlockOf(fibre), fibres.MemberOf(fibre)), fibre);
  }
  EXPECT_EQ(fibres.BlockOf(6), 2);
  EXPECT_EQ(fibres.MemberOf(6), 0);
  EXPECT_EQ(fibres.BlockOf(7), 3);
  EXPECT_EQ(fibres.FibreOf(2, 1), -1);
  EXPECT_EQ(fibres.FibreOf(4, 2), -1);
}

class JobArraysOfBlocks : public ::testing::TestWithParam<int> {};

TEST_P(JobArraysOfBlocks, DoNotOverlapWithinAStage) {
  const ExtractPlan plan = MakeExtractPlan(FrameShape(), Facts(20, 8, 2), GetParam(), {});
  const JobShape job = Job(1, 2);
  const ScratchSizes scratch = {1000, 2000, 3000};
  const JobArrays at = LayOutJob(plan, job, scratch, Somewhere());
  const BlockPlan blocks = BlocksOf(plan, job);
  const int64_t fibres = at.fibres.fibres, spots = fibres * plan.shape.bins, pixels = int64_t{4128} * 4114;
  const int chunks = plan.root_chunks.count, block_chunks = plan.block_chunks.count;

  Extents kept;  // arrays that all stages use
  kept.Add("image", at.image.pixels, 2 * pixels);
  EXPECT_EQ(at.image.ivar, at.image.pixels + pixels);
  kept.Add("windows", at.model.windows, job.bundles);
  kept.Add("output", at.output.bundles, at.output_bytes);
  kept.Add("precision", at.precision, fibres);
  kept.Add("flux", at.solve.flux, spots);
  kept.Add("widest", at.resolution.widest, fibres * chunks * kMaxPoles);
  kept.Add("tasks", at.resolution.tasks, int64_t{kRootKinds} * at.resolution.root_tasks);
  kept.Add("task count", at.resolution.task_count, kRootKinds);
  kept.Add("tasks begun", at.resolution.begun, kRootKinds);
  kept.Add("poles", at.resolution.poles, fibres);
  kept.Add("totals", at.resolution.pole_total, fibres);
  kept.Add("shifts", at.resolution.pole_shift, fibres * kMaxPoles);
  kept.Add("weights", at.resolution.pole_weight, fibres * kMaxPoles);

  Extents decode = kept;
  decode.Add("coded", at.coded, MostDecodeBytes(4128, 4114));
  decode.ExpectApartWithin(kSomewhere, at.bytes);

  Extents normal = kept;
  for (const double* vector : {at.normal.coverage, at.normal.data}) normal.Add("normal", vector, spots);
  const int64_t unknowns = int64_t{blocks.count} * blocks.size;
  EXPECT_EQ(at.normal.own.diagonals, (plan.reach + 1) * blocks.fibres);
  normal.Add("own", at.normal.own.values, unknowns * at.normal.own.diagonals);
  normal.Add("between", at.normal.between, unknowns * at.normal.later_blocks * (2 * blocks.reach + 1));
  normal.Add("least diagonal", at.normal.min_diagonal, fibres);

  Extents eliminate = normal, solve = normal;
  for (Extents* const stage : {&eliminate, &solve})
    stage->Add("factor scratch", at.elimination.factor_scratch, scratch.factor);
  const EliminationArrays& of = at.elimination;
  eliminate.Add("factors", of.factors, blocks.count, block_chunks);
  eliminate.Add("sides", of.sides, 2 * blocks.count);
  eliminate.Add("side factors", of.side_factors, 2 * blocks.count, plan.side_chunks.count);
  eliminate.Add("change", of.change, 2 * blocks.count * blocks.runs);
  eliminate.Add("depth", of.depth, 2 * blocks.count * blocks.runs);
  eliminate.Add("work", of.work, 2 * blocks.count * blocks.runs);
  eliminate.Add("walks", of.walks, 2 + 2 * blocks.count * blocks.runs);
  eliminate.Add("deepest", of.deepest, 2 * blocks.count);
  eliminate.Add("scratch", of.scratch, scratch.eliminate);
  if (blocks.fibres > 1) {
    EXPECT_EQ(of.sides.diagonals, of.blocks.diagonals);
    EXPECT_LE(plan.block_chunks.count, 2 * plan.side_chunks.count) << "depths of a block's other fibres";
    eliminate.Add("blocks", of.blocks, blocks.count);
    eliminate.Add("member", of.member.values, unknowns * of.member.diagonals);
    eliminate.Add("member coupling", of.member_coupling, unknowns * (2 * of.member.diagonals - 1));
  }
  eliminate.ExpectApartWithin(kSomewhere, at.bytes);

  solve.Add("factors", at.solve.factors, fibres, plan.solve_chunks.count);
  for (const double* vector : {at.solve.preconditioned, at.solve.from_next, at.solve.direction,
                               at.solve.product, at.solve.alternating}) {
    solve.Add("solve", vector, spots);
  }
  solve.Add("residuals", at.solve.residual, 2 * spots);
  solve.Add("sums", at.solve.sums, fibres * plan.solve_chunks.count * kSolveSums);
  solve.Add("states", at.solve.states, job.bundles);
  solve.ExpectApartWithin(kSomewhere, at.bytes);

  Extents resolution = kept;
  resolution.Add("chi2", at.model.chi2, job.bundles * at.model.window_pixels);
  resolution.Add("spot sums", at.model.spots, fibres * plan.shape.output_bins());
  resolution.Add("sums", at.resolution.sums, at.resolution.slots * spots * kPoleSums);
  resolution.Add("scratch", at.resolution.scratch, scratch.roots);
  resolution.ExpectApartWithin(kSomewhere, at.bytes);
}

INSTANTIATE_TEST_SUITE_P(Fibres, JobArraysOfBlocks, ::testing::Values(1, 2));

// ---- PSFs.

TEST(PsfArrays, AreAsLargeWithABlockAsWithout) {
  const PsfShape shape = FrameShape();
  const PsfArrays psf = LayOutPsf(shape, Somewhere());
  EXPECT_EQ(reinterpret_cast<std::byte*>(psf.traces.domains), Somewhere());
  EXPECT_EQ(LayOutPsf(shape, nullptr).spots, nullptr);
  const auto end = reinterpret_cast<uintptr_t>(psf.spots + int64_t{500} * 2350 * 17 * 11);
  EXPECT_LE(end, kSomewhere + static_cast<uintptr_t>(PsfBytes(shape)));
  EXPECT_LT(kSomewhere + static_cast<uintptr_t>(PsfBytes(shape)), end + kArrayAlignment);
  // The arrays that the host packs precede all others.
  EXPECT_EQ(reinterpret_cast<uintptr_t>(psf.first_column),
            kSomewhere + static_cast<uintptr_t>(PackedPsfBytes(shape)));
}

// A PSF as its device receives it.
struct Packed {
  explicit Packed(const Psf& psf) : shape(ShapeOf(psf, {6006, 0.8, 20}, 3)), bytes(PackedPsfBytes(shape)) {
    PackPsf(psf, shape, bytes.data());
    at = LayOutPsf(shape, bytes.data());
  }

  PsfShape shape;
  std::vector<std::byte> bytes;
  PsfArrays at;
};

void ExpectSeries(const SeriesArrays& at, const std::vector<const LegendreTable*>& series, int fibres) {
  ASSERT_EQ(at.shape.count, static_cast<int>(series.size()));
  for (size_t s = 0; s < series.size(); ++s) {
    EXPECT_EQ(at.domains[2 * s], series[s]->wave_min);
    EXPECT_EQ(at.domains[2 * s + 1], series[s]->wave_max);
    const int given = static_cast<int>(series[s]->coeff.shape(1));
    for (int i = 0; i < fibres; ++i) {
      for (int k = 0; k < at.shape.coefficients; ++k) {
        const size_t position = (i * series.size() + s) * at.shape.coefficients + k;
        EXPECT_EQ(at.coefficients[position], k < given ? series[s]->coeff(i, k) : 0)
            << s << " " << i << " " << k;
      }
    }
  }
}

TEST(PackedPsf, HoldsEverySeriesOfEveryFibre) {
  const auto psf = testing::MakeScenePsf({.fibres = 3, .rows = 60, .tail = true});
  GaussHermiteSpots& spots = GaussHermite(*psf);
  spots.cores.push_back(spots.core());
  spots.cores.back().terms.resize(2);
  spots.cutoff = spots.core().sigma_x;
  const Packed packed(*psf);
  EXPECT_EQ(packed.shape.output_bins(), 20);
  ExpectSeries(packed.at.traces, {&psf->traces.x, &psf->traces.y}, 3);
  std::vector<const LegendreTable*> series;
  for (const GaussHermiteCore& core : spots.cores)
    series.insert(series.end(), {&core.sigma_x, &core.sigma_y});
  for (const GaussHermiteCore& core : spots.cores) {
    for (const GaussHermiteTerm& term : core.terms) series.push_back(&term.amplitude);
  }
  series.insert(series.end(), {&spots.cutoff, &spots.tail_amplitude, &spots.tail_core, &spots.tail_index,
                               &spots.tail_scale_x, &spots.tail_scale_y});
  const auto& at = std::get<GaussHermiteArrays>(packed.at.model);
  ExpectSeries(at.series, series, 3);
  const int32_t* degrees = at.degrees;
  for (int k = 0; k < 2; ++k) {
    for (const GaussHermiteTerm& term : spots.cores[static_cast<size_t>(k)].terms) {
      EXPECT_EQ(*degrees++, kSecondCoreDegree * k + term.degree_x);
      EXPECT_EQ(*degrees++, kSecondCoreDegree * k + term.degree_y);
    }
  }
}

// Returns a grid of 2 x 3 images, and polynomials of 3 powers.
SampledSpots MakeSampledSpots() {
  SampledSpots spots;
  LayOutImages(20, 13, 2, 9, 7, &spots.layout);
  spots.layout.images = 6;
  spots.layout.positions = 2;
  spots.layout.wavelengths = 3;
  spots.layout.powers = 3;
  Array<float, 2> stamps;
  stamps.Assign({spots.layout.stamps(), spots.layout.stamp.pixels()});
  for (int64_t k = 0; k < stamps.size(); ++k) stamps.data()[k] = static_cast<float>(k % 97);
  spots.stamps = SharedArray<float, 2>(std::move(stamps));
  spots.fibres = {{.position = 1}, {.position = 2, .group = 1, .x_scale = 3}, {.is_empty = 1}};
  spots.positions = {1, 2};
  spots.wavelengths = {6000, 6010, 6030};
  spots.powers = {{0, 0}, {1, 0}, {0, 1}};
  return spots;
}

TEST(PackedPsf, HoldsTheStampsAndWhatTheirWeightsFollowFrom) {
  const auto psf = testing::MakeScenePsf({.fibres = 3, .rows = 60});
  const SampledSpots spots = MakeSampledSpots();
  psf->spots = spots;
  const Packed packed(*psf);
  EXPECT_EQ(packed.shape.stamp, spots.layout.stamp);
  EXPECT_EQ(packed.shape.spot_columns(), 11);
  EXPECT_EQ(packed.shape.spot_rows(), 8);
  const SampledView view = std::get<SampledArrays>(packed.at.model).View();
  EXPECT_EQ(view.layout.images, 6);
  EXPECT_EQ(absl::MakeSpan(view.stamps, spots.stamps.size()), spots.stamps.flat());
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(view.fibres[i].position, spots.fibres[i].position);
    EXPECT_EQ(view.fibres[i].group, spots.fibres[i].group);
    EXPECT_EQ(view.fibres[i].is_empty, spots.fibres[i].is_empty);
    EXPECT_EQ(view.fibres[i].x_scale, spots.fibres[i].x_scale);
    EXPECT_EQ(view.powers[i].x, spots.powers[i].x);
    EXPECT_EQ(view.powers[i].y, spots.powers[i].y);
  }
  EXPECT_EQ(absl::MakeSpan(view.positions, 2), absl::MakeSpan(spots.positions));
  EXPECT_EQ(absl::MakeSpan(view.wavelengths, 3), absl::MakeSpan(spots.wavelengths));
}

TEST(PsfShape, IsTheSameForAnOutline) {
  const WavelengthGrid grid = {6006, 0.8, 20};
  const auto psf = testing::MakeScenePsf({.fibres = 3, .rows = 60, .tail = true});
  const int64_t bytes = PsfBytes(ShapeOf(*psf, grid, 3)), packed = PackedPsfBytes(ShapeOf(*psf, grid, 3));
  for (GaussHermiteTerm& term : GaussHermite(*psf).core().terms) term.amplitude = {};
  EXPECT_EQ(PsfBytes(ShapeOf(*psf, grid, 3)), bytes);
  EXPECT_EQ(PackedPsfBytes(ShapeOf(*psf, grid, 3)), packed);

  SampledSpots spots = MakeSampledSpots();
  psf->spots = spots;
  const int64_t with_stamps = PsfBytes(ShapeOf(*psf, grid, 3));
  EXPECT_GT(PackedPsfBytes(ShapeOf(*psf, grid, 3)), StampsBytes(spots.layout));
  spots.stamps = {};
  psf->spots = spots;
  EXPECT_EQ(PsfBytes(ShapeOf(*psf, grid, 3)), with_stamps);
}

}  // namespace
}  // namespace spexd::cuda
