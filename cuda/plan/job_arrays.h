// One job in its block of device memory: the arrays of each stage, as kernels take them, by value.
//
// Fibres and bundles count in the job. A row of an array is contiguous in wavelength.
#ifndef SPEXD_CUDA_PLAN_JOB_ARRAYS_H_
#define SPEXD_CUDA_PLAN_JOB_ARRAYS_H_

#include <cstddef>
#include <cstdint>

#include "cuda/plan/extract_plan.h"
#include "cuda/plan/job_shape.h"

namespace spexd::cuda {

// The fibres of a job, by bundles.
struct JobFibres {
  int first_bundle, bundles;  // the first in the PSF
  int first_fibre, fibres;    // the first in the PSF
  int bundle_size;

  SPEXD_HOST_DEVICE int BundleOf(int fibre) const { return fibre / bundle_size; }
  SPEXD_HOST_DEVICE int FirstOf(int bundle) const { return bundle * bundle_size; }
  SPEXD_HOST_DEVICE int EndOf(int bundle) const {
    const int end = (bundle + 1) * bundle_size;
    return end < fibres ? end : fibres;
  }
};

// Of the CCD [row, column], float32, as a job brings it.
struct ImageArrays {
  float* pixels;
  float* ivar;
};

// A^T W A + Lambda by pairs of fibres.
struct NormalArrays {
  int bins, reach, fibre_reach;
  double* weight;       // A^T W 1 [fibre, bin]
  double* data;         // A^T W p [fibre, bin]
  double* own;          // bins j and j + k of a fibre [fibre, k = 0..reach, j]
  double* between;      // bin j of a fibre, j + k of a later one [apart - 1, fibre, k + reach, j]
  double* most_weight;  // [fibre]
  uint8_t* weak;        // [fibre, bin]: hardly touches data
};

// Symmetric band matrices by diagonals: entry (j + k, j) is at values[(matrix * diagonals + k) * size + j].
struct BandArrays {
  int size, diagonals;
  double* values;
  // [matrix, j]: entries of column j count up to this diagonal. It falls by no more than one from column to
  // column, and ends with the matrix. Null: all diagonals count.
  int32_t* widths;
};

// Cholesky factors of such matrices, by tile columns (cuda/kernels/factor.h).
struct FactorArrays {
  int columns, tiles;  // tile columns; tiles below the diagonal one, at most
  double* values;      // [matrix, tile column, 1 + tiles, lane, 2]
  int32_t* depths;     // [matrix, chunk]: tiles below the diagonal one that there are
};

// Each block's matrix, its neighbours eliminated.
struct EliminationArrays {
  BandArrays own;           // D [block]
  double* coupling;         // O: unknown j of a block, j + k of the next [block, k + reach, j]
  FactorArrays factors;     // of D
  BandArrays sides[2];      // S [block], the blocks before eliminated and those behind
  FactorArrays side_factors[2];
  int32_t* changes[2];      // of this round and the one before [side, block, chunk], see EliminateArgs
  int32_t* couplings;       // [side, block, chunk]
  int32_t* open_steps;      // [side, run, block]
  // Of blocks of several fibres; else not there: P of blocks, one fibre of each and its partners (cuda/kernels/blocks.h),
  // and what is left of the fibre's without them.
  BandArrays blocks, member, partners, left_over;
  double* partner_coupling;  // [block, k + diagonals - 1, j]
  FactorArrays partner_factors;
  double* factor_scratch;
  double* scratch;
};

// The flux by conjugate gradients; vectors are [fibre, bin].
struct SolveArrays {
  FactorArrays factors;  // of the precision
  double *flux, *residual, *preconditioned, *direction[2], *product;
  double* alternating;      // P^-1 (1, -1, 1, ...)
  double* values;           // [fibre, chunk, extended]
  double* sums;             // [which, fibre, chunk]
};

struct ResolutionArrays {
  int32_t* widest;      // [fibre, chunk]: the largest width of the precision
  int32_t* poles;       // [fibre]
  double* pole_total;   // [fibre]: sum of weights
  double* pole_shift;   // [fibre, kMaxPoles]
  double* pole_weight;  // [fibre, kMaxPoles]: times shift
  double* sums;         // [group of poles, fibre, bin, kPoleSums]
  double* scratch;
};

struct ModelArrays {
  Window* windows;       // [bundle]
  int32_t widest;        // columns of the widest window
  int64_t window_pixels;  // room of each in chi2
  double* chi2;          // [bundle, CCD row, column of the window]
};

// The result, bundle by bundle: a bundle's arrays lie behind each other, at these offsets from its start.
struct OutputArrays {
  std::byte* bundles;
  int64_t bundle_bytes;
  int bundle_size, bins;
  bool float32;
  int64_t residual;                       // double: |b - A f| / |b|
  int64_t flux, ivar, chi2pix, mask;      // [fibre, bin] float32 or float64, as asked; mask uint32
  int64_t resolution;                     // [fibre, diagonal, bin]
  int64_t pixmask;                        // float64 results alone
  int64_t model;                          // [CCD row, column of the window] float32, where asked for
};

struct JobArrays {
  JobFibres fibres;
  ImageArrays image;
  NormalArrays normal;
  EliminationArrays elimination;
  BandArrays precision;  // P [fibre]
  SolveArrays solve;
  ResolutionArrays resolution;
  ModelArrays model;
  OutputArrays output;
  int64_t output_offset, output_bytes;  // of all bundles in the block
  int64_t bytes;                        // of the block
};

// What kernels decide (cuda/kernels), in doubles.
struct ScratchSizes {
  int64_t factor = 0, eliminate = 0, roots = 0;
};

// Null: for the sizes alone.
JobArrays LayOutJob(const ExtractPlan& plan, const JobShape& job, const ScratchSizes& scratch,
                    std::byte* block);

}  // namespace spexd::cuda

#endif  // SPEXD_CUDA_PLAN_JOB_ARRAYS_H_
