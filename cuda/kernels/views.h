// What kernels see of a prepared PSF and of a job: sizes and device pointers, passed by value.
#ifndef SPEXD_CUDA_KERNELS_VIEWS_H_
#define SPEXD_CUDA_KERNELS_VIEWS_H_

#include <cstddef>
#include <cstdint>

#include "cuda/plan/psf_layout.h"
#include "cuda/plan/psf_shape.h"
#include "cuda/plan/tables.h"

namespace spexd::cuda {

// The least band of P that the square root takes; P is zero where widths are less.
inline constexpr int kLeastRootWidth = 8;

struct PsfView {
  PsfShape shape;
  const double* domains;
  const int32_t* degrees;
  const double* coefficients;
  int32_t* first_column;
  int32_t* first_row;
  double* offset_x;
  double* offset_y;
  int32_t* row_bins;
  int32_t* meets;
  BundleFacts* facts;
  double* spots;
};

// One job on the bundles [first_bundle, first_bundle + bundles) of its PSF. `fibre` counts from first_fibre
// of the job, `group` from its first. Doubles unless said otherwise.
struct JobView {
  PsfView psf;
  int first_bundle, bundles, first_fibre, fibres, groups;
  double psferr, regularize;
  bool want_model, float32;
  ChunkPlan solve, roots;       // "chunk" below is of solve, "root chunk" of roots
  int pair_reach, pair_side;    // pairs are [pair_reach + 1][pair_side] of each spot
  int usual_width, most_width;  // covariance widths: over bundles, for strides
  int band_tiles, chunk_tiles;  // most tiles below the diagonal one, and tile columns of a chunk
  int ring_rows;                // of `ring`
  int window_slots;             // of covariance.cu
  int window_columns;           // of the widest window
  int shared_bytes;             // of shared memory that a block may take

  const GroupPlan* group_plans;  // [group]
  const Window* windows;         // [bundle]
  const float* pixels;           // [CCD row, column]
  const float* ivar;
  double* weight;             // A^T W 1 [fibre, bin]
  double* data;               // A^T W p [fibre, bin]
  double* pairs;              // A^T W A [fibre, bin, pair]
  double* most_weight;        // [fibre]
  double* factor_window;      // [group, chunk]: where the band is too wide for shared memory
  double* factor;             // [group, chunk, tile column, 1 + band tile, tile]: D^-1, then Y^T (solve.cu)
  double* forward;            // [group, chunk, tile column, kTile]: w of solve.cu
  double* flux;               // f [fibre, bin], electrons per bin
  uint8_t* weak;              // [fibre, bin]
  int32_t* wanted;            // [group, bin]: covariance widths asked for,
  int32_t* widths;            // and taken
  int32_t* again;             // [pass, group, piece]: whether covariance is computed (anew) in a pass
  double* ring;               // [group, piece, band tile + 1, ring row, tile]: covariance.cu
  double* covariance;         // [fibre, diagonal, bin]
  double* regression;         // [fibre, diagonal, bin]: u of precision.cu
  double* regression_weight;  // [fibre, bin]: 1 / v
  double* correlation;        // [fibre, bin]: last partial correlation
  double* regress_scratch;    // of precision.cu
  double* precision;          // P [fibre, diagonal, bin]
  int32_t* pole_blocks;       // [fibre]
  double* pole_total;         // [fibre]: sum of weights
  double* pole_shift;         // [fibre, kMaxPoles]
  double* pole_weight;        // [fibre, kMaxPoles]: times shift
  int32_t* wide;              // [group, root chunk]: the largest covariance width
  double* pole_scratch;       // of roots.cuh
  double* pole_sums;          // [pole block, fibre, bin, kPoleSums]
  double* chi2;               // of the windows' pixels
  float* model;               // likewise, where wanted
  // The result, [fibre, output bin]; float64 or float32 as asked.
  void* out_flux;
  void* out_ivar;
  void* out_resolution;  // [fibre, diagonal, output bin]
  void* out_chi2pix;
  double* out_pixmask;  // float64 only
  uint32_t* out_mask;
};

}  // namespace spexd::cuda

#endif  // SPEXD_CUDA_KERNELS_VIEWS_H_
