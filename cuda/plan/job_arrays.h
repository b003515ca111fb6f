// One job in its block of device memory: the arrays of each stage, as kernels take them, by value.
//
// "Fibre" counts in the job, "bundle" too. Unknowns of a *block* of m fibres (nearly always one) are
// interleaved: number bin * m + fibre in the block.
#ifndef SPEXD_CUDA_PLAN_JOB_ARRAYS_H_
#define SPEXD_CUDA_PLAN_JOB_ARRAYS_H_

#include <cstddef>
#include <cstdint>

#include "cuda/plan/extract_plan.h"
#include "cuda/plan/job_shape.h"

namespace spexd::cuda {

// Of the CCD, [row, column].
struct ImageArrays {
  float* pixels;
  float* ivar;
};

// The fibres of a job, by bundles.
struct JobFibres {
  int first_bundle, bundles;  // of the PSF
  int first_fibre, fibres;    // of the PSF
  int bundle_size;

  SPEXD_HOST_DEVICE int BundleOf(int fibre) const { return fibre / bundle_size; }
  SPEXD_HOST_DEVICE int FirstOf(int bundle) const { return bundle * bundle_size; }
  SPEXD_HOST_DEVICE int EndOf(int bundle) const {
    const int end = (bundle + 1) * bundle_size;
    return end < fibres ? end : fibres;
  }
};

// A^T W A + Lambda by pairs of fibres.
struct NormalArrays {
  int bins, reach, fibre_reach;
  double* weight;       // A^T W 1 [fibre, bin]
  double* data;         // A^T W p [fibre, bin]
  double* own;          // a fibre's bins j and j + k [fibre, k = 0..reach, j]
  double* between;      // bin j of a fibre, j + k of a later one [apart - 1, fibre, k + reach, j]
  double* most_weight;  // [fibre]
  uint8_t* weak;        // [fibre, bin]: hardly touches data
};

// Symmetric band matrices by diagonals: entry (j + k, j) is at values[(matrix * diagonals + k) * size + j].
struct BandArrays {
  int size, diagonals;
  double* values;
  // Entries of column j count up to this diagonal [matrix, j]; it falls by no more than one from column to
  // column, and ends with the matrix. Null: all diagonals count.
  int32_t* widths;
};

// Cholesky factors of such matrices, by tile columns (cuda/kernels/factor.cu).
struct FactorArrays {
  int columns, tiles;  // tiles below the diagonal one, at most
  double* values;      // [matrix, tile column, 1 + tiles, lane, 2]
  int32_t* depths;     // [matrix, chunk]: tiles below the diagonal one that there are
};

// Each fibre's precision, its neighbours eliminated.
struct EliminationArrays {
  int per_block, blocks_per_bundle, blocks, coupling_reach;
  BandArrays own;          // D of each block
  double* coupling;        // O: unknown j of a block, j + k of the next [block, k + coupling_reach, j]
  FactorArrays factors;    // of D
  BandArrays sides[2];     // S of the fibres before a block and itself; of those behind
  FactorArrays side_factors[2];
  int32_t* undone;         // tasks that need more memory than a block has of its own
  double* scratch;
};

// The flux by conjugate gradients; vectors are [fibre, bin].
struct SolveArrays {
  FactorArrays factors;  // of the precision
  double *flux, *residual, *preconditioned, *direction[2], *product;
  double* alternating;  // P^-1 (1, -1, 1, ...)
  double* sums;         // [which, step, fibre, part]: of norms and products
  double* bundle_residual;
};

struct ResolutionArrays {
  int32_t* poles;       // [fibre]
  double* pole_total;   // [fibre]: sum of weights
  double* pole_shift;   // [fibre, kMaxPoles]
  double* pole_weight;  // [fibre, kMaxPoles]: times shift
  double* sums;         // [pole group, fibre, bin, kPoleSums]
  double* scratch;
};
