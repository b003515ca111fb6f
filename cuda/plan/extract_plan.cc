#include "cuda/plan/extract_plan.h"

#include <algorithm>
#include <utility>

#include "core/extract/band_rule.h"
#include "core/model/tolerances.h"
#include "core/plan/bundle_plan.h"
#include "core/plan/fibre_blocks.h"
#include "cuda/plan/tile.h"

namespace spexd::cuda {
namespace {

// Minimum length of a chunk in halos: shorter chunks would compute more halo than frame.
constexpr int kKeptHalos = 5;
// Chunks of the flux's preconditioner, for which all later work waits: their halos, in reaches and at most in
// bins, and how many bins they keep at least. Halos decide how many steps conjugate gradients take, not what
// they find. From a reach of kFarReach on, influence carries further, above all beside holes.
constexpr int kNearHaloReaches = 3, kFarHaloReaches = 20, kFarReach = 10;
// Halos of the square roots' chunks below kFarReach, in reaches: the widest band. Longer halos change results
// by less than float32 resolves, even beside holes, and the longer a chunk, the more often it contains a wide
// band.
constexpr int kNearRootHaloReaches = 8;
constexpr int kMaxSolveHalo = 512;
constexpr int kSolveBins = 128;
// Number of diagonals that the narrow square roots read, whatever the band.
constexpr int kMinMaxWidth = 14;

// Returns the bins that each chunk keeps, if all chunks have about the same length.
int KeptWith(int bins, int halo) {
  const int count = std::max(1, bins / (kKeptHalos * halo));
  return (bins + count - 1) / count;
}

ChunkPlan MakeChunks(int size, int kept, int halo) {
  ChunkPlan chunks;
  chunks.kept = RoundedUp(std::clamp(kept, 1, size), 2 * kTile);
  chunks.count = (size + chunks.kept - 1) / chunks.kept;
  chunks.halo = RoundedUp(halo, kTile);
  chunks.extended =
      RoundedUp(chunks.count == 1 ? size : std::min(size, chunks.kept + 2 * chunks.halo), kTile);
  return chunks;
}

}  // namespace

int BlockFibres(const Psf& psf, const PsfShape& shape, const std::vector<BundleFacts>& facts) {
  const WavelengthGrid padded = {shape.first_wave, shape.step, shape.bins};
  int most = 1;
  for (int b = 0; b < shape.bundles(); ++b) {
    const FibreRange fibres = FibresOfBundle(b, shape.bundle_size, shape.fibres);
    most = std::max(most, FibresPerBlock(psf, padded, fibres, facts[b].fibre_reach));
  }
  return most;
}

ExtractPlan MakeExtractPlan(const PsfShape& shape, std::vector<BundleFacts> facts, int block_fibres,
                            const PlanOptions& options) {
  ExtractPlan plan;
  plan.shape = shape;
  plan.bundles = std::move(facts);
  plan.shared_bytes = options.shared_bytes;
  for (const BundleFacts& bundle : plan.bundles) {
    plan.reach = std::max(plan.reach, bundle.reach);
    plan.fibre_reach = std::max(plan.fibre_reach, bundle.fibre_reach);
  }
  plan.block_fibres = std::min(block_fibres, shape.bundle_size);
  plan.usual_width = UsualBandWidth(plan.reach);
  plan.max_width = std::max(MostBandWidth(plan.reach), kMinMaxWidth);
  const bool cut = plan.reach < kFineReach;
  const bool usual = cut && plan.block_fibres == 1;
  plan.side_width = usual ? std::min(kMaxSideWidth, plan.max_width) : plan.max_width;
  const int blocks = (shape.bundle_size + plan.block_fibres - 1) / plan.block_fibres;
  plan.rounds = plan.block_fibres == 1 ? std::min(kUsualRounds, blocks) : blocks;

  const int reach = std::max(plan.reach, 1), halo = kHaloReaches * reach,
            root_halo = plan.reach < kFarReach ? kNearRootHaloReaches * reach : halo;
  const auto kept_with = [&](int of_halo) {
    if (!cut) return shape.bins;
    return options.chunk_bins > 0 ? std::max(options.chunk_bins, plan.max_width)
                                  : KeptWith(shape.bins, of_halo);
  };
  const int kept = kept_with(halo);
  plan.root_chunks = MakeChunks(shape.bins, kept_with(root_halo), root_halo);
  const int reaches = plan.reach < kFarReach ? kNearHaloReaches : kFarHaloReaches;
  const int solve_halo = std::min(reaches * plan.reach, kMaxSolveHalo);
  plan.solve_chunks = MakeChunks(shape.bins, std::max(kSolveBins, 2 * solve_halo), solve_halo);
  const int m = plan.block_fibres;
  plan.block_chunks = MakeChunks(shape.bins * m, kept * m, halo * m);
  plan.side_chunks = MakeChunks(shape.bins * m, (cut ? std::min(kept, 2 * halo) : kept) * m, halo * m);
  return plan;
}

int FibresOf(const ExtractPlan& plan, const JobShape& job) {
  const PsfShape& shape = plan.shape;
  return std::min((job.first_bundle + job.bundles) * shape.bundle_size, shape.fibres) -
         job.first_bundle * shape.bundle_size;
}

BlockPlan BlocksOf(const ExtractPlan& plan, const JobShape& job) {
  const int m = plan.block_fibres, fibres = FibresOf(plan, job), size = plan.shape.bundle_size;
  BlockPlan blocks;
  blocks.fibres = m;
  blocks.per_bundle = (size + m - 1) / m;
  blocks.count = (job.bundles - 1) * blocks.per_bundle + (fibres - (job.bundles - 1) * size + m - 1) / m;
  if (plan.fibre_reach == 0) blocks.per_bundle = 1;  // no block has a neighbour
  blocks.size = plan.shape.bins * m;
  blocks.reach = InterleavedWidth(plan.reach, m);
  blocks.runs = RunsOf(blocks.size);
  return blocks;
}

std::vector<Window> WindowsOf(const ExtractPlan& plan, const JobShape& job) {
  std::vector<Window> windows;
  for (int b = job.first_bundle; b < job.first_bundle + job.bundles; ++b) {
    const int columns = std::max(plan.bundles[b].end_column - plan.bundles[b].first_column, 0);
    windows.push_back({columns > 0 ? plan.bundles[b].first_column : 0, columns});
  }
  return windows;
}

}  // namespace spexd::cuda
