// How a frame is divided on a device: blocks of fibres, chunks of wavelength, bands. Pure host code. It
// depends only on PSF, grid and options, so that a result never depends on what else runs.
#ifndef SPEXD_CUDA_PLAN_EXTRACT_PLAN_H_
#define SPEXD_CUDA_PLAN_EXTRACT_PLAN_H_

#include <cstdint>
#include <vector>

#include "cuda/plan/job_shape.h"
#include "cuda/plan/psf_shape.h"
#include "cuda/plan/tables.h"

namespace spexd::cuda {

// Maximum shared memory of a block, even if a device has more: that of an H100, less a margin.
inline constexpr int kMaxShared = 200 * 1024;

struct PlanOptions {
  // Bins of each chunk without its halos; 0: chosen. At least the grid's bins: unchunked. Fine grids are
  // never cut. The chunks of the flux's preconditioner do not depend on this, and any grid has them.
  int chunk_bins = 0;
  int shared_bytes = kMaxShared;  // shared memory of a block on each device in use
};

struct ExtractPlan {
  PsfShape shape;
  std::vector<BundleFacts> bundles;  // [bundle], all of the PSF
  int reach = 0, fibre_reach = 0;    // largest of any bundle
  int block_fibres = 1;              // fibres eliminated at a time (core/plan/fibre_blocks.h)
  int rounds = 0;                    // elimination rounds before the last
  int usual_width = 0;               // width of a fibre's precision where data are good
  int max_width = 0;                 // its largest width anywhere (core/extract/band_rule.h)
  int side_width = 0;                // largest width of what elimination passes on
  ChunkPlan root_chunks;             // chunks of a fibre's bins, for the square roots
  ChunkPlan block_chunks;            // chunks of a block's unknowns
  ChunkPlan side_chunks;             // the same where few blocks have work: shorter, to be done sooner
  ChunkPlan solve_chunks;            // of a fibre's bins, for the flux's preconditioner and its factors
  int shared_bytes = kMaxShared;     // see PlanOptions
};

// Fibres eliminated at a time: the most that any bundle needs (core/plan/fibre_blocks.h).
int BlockFibres(const Psf& psf, const PsfShape& shape, const std::vector<BundleFacts>& facts);

// `facts`: [bundle], as EnqueueLocate found them.
ExtractPlan MakeExtractPlan(const PsfShape& shape, std::vector<BundleFacts> facts, int block_fibres,
                            const PlanOptions& options);

// The bundles of a job, their fibres and blocks.
int FibresOf(const ExtractPlan& plan, const JobShape& job);
BlockPlan BlocksOf(const ExtractPlan& plan, const JobShape& job);
// The model windows of a job's bundles.
std::vector<Window> WindowsOf(const ExtractPlan& plan, const JobShape& job);

}  // namespace spexd::cuda

#endif  // SPEXD_CUDA_PLAN_EXTRACT_PLAN_H_
