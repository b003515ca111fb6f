// How a frame is spread over a device: blocks of fibres, chunks of wavelength, bands. Pure host code; depends
// on PSF, grid and options alone, so that a result never depends on what else runs.
#ifndef SPEXD_CUDA_PLAN_EXTRACT_PLAN_H_
#define SPEXD_CUDA_PLAN_EXTRACT_PLAN_H_

#include <cstdint>
#include <vector>

#include "cuda/plan/job_shape.h"
#include "cuda/plan/psf_shape.h"
#include "cuda/plan/tables.h"

namespace spexd::cuda {

// Of shared memory a block takes at most, however much a device has: what an H100 has, less a margin.
inline constexpr int kMostShared = 200 * 1024;

struct PlanOptions {
  int chunk_bins = 0;  // bins of all chunks without their halos; 0: chosen; at least the grid's: unchunked.
                       // Fine grids are never cut
  int shared_bytes = kMostShared;  // that a block may take of shared memory on each device in use
};

struct ExtractPlan {
  PsfShape shape;
  std::vector<BundleFacts> bundles;  // all of the PSF
  int reach = 0, fibre_reach = 0;    // the most of any bundle
  int block_fibres = 1;              // eliminated at a time (core/plan/fibre_blocks.h)
  int rounds = 0;                    // of elimination before the last
  int usual_width = 0;               // of a fibre's precision where data are good,
  int most_width = 0;                // and anywhere (core/extract/band_rule.h)
  int side_width = 0;                // of what elimination hands on, at most
  ChunkPlan chunks;                  // of a fibre's bins
  ChunkPlan block_chunks;            // of a block's unknowns
  int shared_bytes = kMostShared;    // PlanOptions
};

// Fibres that are eliminated at a time, the most that any bundle needs (core/plan/fibre_blocks.h).
int BlockFibres(const Psf& psf, const PsfShape& shape, const std::vector<BundleFacts>& facts);

// `facts`: as EnqueueLocate found them, one a bundle.
ExtractPlan MakeExtractPlan(const PsfShape& shape, std::vector<BundleFacts> facts, int block_fibres,
                            const PlanOptions& options);

// The bundles of a job, their fibres and blocks.
int FibresOf(const ExtractPlan& plan, const JobShape& job);
BlockPlan BlocksOf(const ExtractPlan& plan, const JobShape& job);
// The model windows of a job's bundles.
std::vector<Window> WindowsOf(const ExtractPlan& plan, const JobShape& job);

}  // namespace spexd::cuda

#endif  // SPEXD_CUDA_PLAN_EXTRACT_PLAN_H_
