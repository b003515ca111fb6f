#include "cuda/plan/job_layout.h"

#include <algorithm>

#include "core/extract/pole_formula.h"
#include "core/model/frame.h"
#include "cuda/plan/psf_layout.h"
#include "cuda/plan/tile.h"

namespace spexd::cuda {

JobRange RangeOf(const ExtractPlan& plan, const JobShape& job) {
  const PsfShape& shape = plan.shape;
  JobRange range;
  range.first_fibre = job.first_bundle * shape.bundle_size;
  range.fibres =
      std::min((job.first_bundle + job.bundles) * shape.bundle_size, shape.fibres) - range.first_fibre;
  range.first_group = plan.first_group[job.first_bundle];
  range.groups = plan.first_group[job.first_bundle + job.bundles] - range.first_group;
  return range;
}

int64_t WindowPixels(const ExtractPlan& plan, const JobShape& job) {
  int64_t pixels = 0;
  for (int b = job.first_bundle; b < job.first_bundle + job.bundles; ++b) {
    pixels +=
        int64_t{std::max(plan.bundles[b].end_column - plan.bundles[b].first_column, 0)} * plan.shape.ccd_rows;
  }
  return pixels;
}

JobLayout MakeJobLayout(const ExtractPlan& plan, const JobShape& job, const ScratchSizes& scratch) {
  constexpr int64_t kDouble = sizeof(double), kInt = sizeof(int32_t), kFloat = sizeof(float);
  const PsfShape& shape = plan.shape;
  const JobRange range = RangeOf(plan, job);
  const int64_t fibres = range.fibres, bins = shape.bins, spots = fibres * bins, groups = range.groups;
  const int64_t blocks = groups * plan.solve.count,
                image = int64_t{shape.ccd_rows} * shape.ccd_columns * kFloat;
  const int64_t diagonals = plan.most_width + 1;
  const int64_t pairs = int64_t{plan.most_reach + 1} * (2 * plan.most_fibre_reach + 1);
  const int64_t windows = WindowPixels(plan, job);

  JobLayout at;
  int64_t end = 0;
  const auto take = [&end](int64_t bytes) {
    const int64_t start = end;
    end += (bytes + kLayoutAlignment - 1) / kLayoutAlignment * kLayoutAlignment;
    return start;
  };
  at.pixels = 0;
  at.ivar = image;  // right behind, as they are copied
  take(2 * image);
  at.group_plans = take(groups * static_cast<int64_t>(sizeof(GroupPlan)));
  at.windows = take(job.bundles * static_cast<int64_t>(sizeof(Window)));
  at.weight = take(spots * kDouble);
  at.data = take(spots * kDouble);
  at.pairs = take(spots * pairs * kDouble);
  at.most_weight = take(fibres * kDouble);
  at.factor_window = take(blocks * scratch.factor_window * kDouble);
  at.factor = take(blocks * plan.most_chunk_tiles * (plan.most_band_tiles + 1) * kTileSize * kDouble);
  at.forward = take(blocks * plan.most_chunk_tiles * kTile * kDouble);
  at.flux = take(spots * kDouble);
  at.weak = take(spots);
  at.wanted = take(groups * bins * kInt);
  at.widths = take(groups * bins * kInt);
  at.again = take(kPasses * groups * plan.solve.all_pieces() * kInt);
  at.ring = take(groups * plan.solve.all_pieces() * (plan.most_band_tiles + 1) * scratch.ring_rows *
                 kTileSize * kDouble);
  at.covariance = take(spots * diagonals * kDouble);
  at.regression = take(spots * diagonals * kDouble);
  at.regression_weight = take(spots * kDouble);
  at.correlation = take(spots * kDouble);
  at.regress_scratch = take(scratch.regress * kDouble);
  at.precision = take(spots * diagonals * kDouble);
  at.pole_blocks = take(fibres * kInt);
  at.pole_total = take(fibres * kDouble);
  at.pole_shift = take(fibres * kMaxPoles * kDouble);
  at.pole_weight = take(fibres * kMaxPoles * kDouble);
  at.wide = take(groups * plan.roots.count * kInt);
  at.pole_scratch = take(scratch.square_root * kDouble);
  at.pole_sums = take(spots * (kMaxPoles / kPoleBlock) * kPoleSums * kDouble);
  at.chi2 = take(windows * kDouble);

  const int64_t real = job.float32 ? kFloat : kDouble, out = fibres * shape.output_bins();
  at.output = end;
  at.out_flux = take(out * real);
  at.out_ivar = take(out * real);
  at.out_resolution = take(out * kResolutionDiagonals * real);
  at.out_chi2pix = take(out * real);
  at.out_pixmask = take(job.float32 ? 0 : out * real);
  at.out_mask = take(out * kInt);
  at.model = take(job.want_model ? windows * kFloat : 0);
  at.output_bytes = end - at.output;
  at.bytes = end;
  return at;
}

}  // namespace spexd::cuda
