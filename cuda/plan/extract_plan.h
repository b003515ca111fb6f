// How a frame is spread over a device: groups of fibres, chunks of wavelength, tiles of the band, and where
// everything lies in memory. Pure host code; depends on PSF, grid and options alone, so that a result never
// depends on what else runs.
#ifndef SPEXD_CUDA_PLAN_EXTRACT_PLAN_H_
#define SPEXD_CUDA_PLAN_EXTRACT_PLAN_H_

#include <cstdint>
#include <vector>

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
  std::vector<BundleFacts> bundles;          // all of the PSF
  std::vector<GroupPlan> groups;             // by bundle
  std::vector<int> first_group;              // of each bundle, and behind the last
  ChunkPlan solve;                           // of the linear systems
  ChunkPlan roots;                           // of the square roots
  int most_reach = 0, most_fibre_reach = 0;  // over bundles: strides
  int most_usual_width = 0;                  // covariance widths over bundles: where data are good,
  int most_width = 0;                        // and at most, beside holes
  int most_band_tiles = 0;                   // tiles below the diagonal, over groups
  int most_chunk_tiles = 0;                  // tile columns of a chunk with its halos, over groups
  int64_t window_pixels = 0;                 // of all bundles' model windows
  int shared_bytes = kMostShared;            // PlanOptions
};

// Bins of covariance kept by a bundle of this reach where data are good, and at most.
int UsualWidth(int reach);
int MostWidth(int reach);

// `facts`: as EnqueueLocate found them, one a bundle.
ExtractPlan MakeExtractPlan(const PsfShape& shape, std::vector<BundleFacts> facts,
                            const PlanOptions& options);

}  // namespace spexd::cuda

#endif  // SPEXD_CUDA_PLAN_EXTRACT_PLAN_H_
