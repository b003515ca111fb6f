#include "cuda/plan/extract_plan.h"

#include <algorithm>
#include <utility>

#include "core/model/frame.h"
#include "core/model/tolerances.h"
#include "core/plan/bundle_plan.h"
#include "cuda/plan/tile.h"

namespace spexd::cuda {
namespace {

// Influence falls about 5 times in 3 of 8 bins of reach: ten reaches leave 1e-11 sigma of a chunk's end.
constexpr int kHaloReaches = 10;
// Chunks are at least so many halos long: shorter ones would compute more halo than frame.
constexpr int kSolveHalos = 5;
constexpr int kRootHalos = 5;
// Covariance begins a halo behind what is kept, and what is computed again is mostly in a few places.
constexpr int kPieces = 2;

ChunkPlan MakeChunks(int all_bins, int chunk_bins, int halo) {
  ChunkPlan chunks;
  chunks.bins = std::clamp(chunk_bins, 1, all_bins);
  chunks.count = (all_bins + chunks.bins - 1) / chunks.bins;
  chunks.halo = halo;
  chunks.extended = chunks.count == 1 ? all_bins : std::min(all_bins, chunks.bins + 2 * halo);
  return chunks;
}

}  // namespace

int UsualWidth(int reach) { return std::max(reach + kCovarianceMargin, kResolutionHalfWidth + 1); }
int MostWidth(int reach) { return std::max(kHoleReaches * (reach + kCovarianceMargin), UsualWidth(reach)); }

ExtractPlan MakeExtractPlan(const PsfShape& shape, std::vector<BundleFacts> facts,
                            const PlanOptions& options) {
  ExtractPlan plan;
  plan.shape = shape;
  plan.bundles = std::move(facts);
  plan.shared_bytes = options.shared_bytes;
  for (int b = 0; b < shape.bundles(); ++b) {
    const BundleFacts& bundle = plan.bundles[b];
    const FibreRange fibres = FibresOfBundle(b, shape.bundle_size, shape.fibres);
    plan.first_group.push_back(static_cast<int>(plan.groups.size()));
    for (const FibreGroup& group : MakeGroups(fibres.count)) {
      GroupPlan g;
      g.bundle = b;
      g.first_solved = fibres.first + group.solved.first;
      g.solved = group.solved.count;
      g.first_kept = fibres.first + group.kept.first;
      g.kept = group.kept.count;
      g.bundle_first = fibres.first;
      g.bundle_fibres = fibres.count;
      g.reach = bundle.reach;
      g.fibre_reach = std::min(bundle.fibre_reach, g.solved - 1);
      const int64_t unknowns = int64_t{shape.bins} * g.solved;
      const int64_t tiles = (unknowns + kTile - 1) / kTile;
      const int64_t half_band = int64_t{g.reach} * g.solved + g.fibre_reach;
      // At least one, so that every diagonal tile waits for the one before.
      g.band_tiles =
          static_cast<int32_t>(std::min(std::max<int64_t>((half_band + kTile - 1) / kTile, 1), tiles - 1));
      g.usual_width = UsualWidth(g.reach);
      plan.groups.push_back(g);
      plan.most_band_tiles = std::max(plan.most_band_tiles, g.band_tiles);
    }
    plan.most_reach = std::max(plan.most_reach, bundle.reach);
    plan.most_fibre_reach = std::max(plan.most_fibre_reach, bundle.fibre_reach);
    plan.window_pixels += int64_t{bundle.end_column - bundle.first_column} * shape.ccd_rows;
  }
  plan.first_group.push_back(static_cast<int>(plan.groups.size()));
  plan.most_usual_width = UsualWidth(plan.most_reach);
  plan.most_width = MostWidth(plan.most_reach);

  const int halo = std::max(kHaloReaches * std::max(plan.most_reach, 1), 2 * plan.most_width);
  const auto chunks = [&](int least_halos) {
    if (plan.most_reach > kMostUsualReach) return MakeChunks(shape.bins, shape.bins, halo);
    const int count = std::max(1, shape.bins / (least_halos * halo));
    const int chosen = (shape.bins + count - 1) / count;
    return MakeChunks(shape.bins,
                      options.chunk_bins > 0 ? std::max(options.chunk_bins, plan.most_reach) : chosen, halo);
  };
  plan.solve = chunks(kSolveHalos);
  if (plan.most_reach <= kMostUsualReach) plan.solve.pieces = kPieces;
  plan.roots = chunks(kRootHalos);
  for (const GroupPlan& g : plan.groups) {
    plan.most_chunk_tiles =
        std::max(plan.most_chunk_tiles, (plan.solve.extended * g.solved + kTile - 1) / kTile);
  }
  return plan;
}

}  // namespace spexd::cuda
