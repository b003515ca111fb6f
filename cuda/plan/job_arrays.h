// Arrays of one job in its block of device memory, for each stage. Kernels take these structs by value.
//
// Fibres and bundles are counted within the job. A row of an array is contiguous in wavelength.
//
// Arrays of different stages share memory. Each stage uses the arrays that its row names, and all of the
// first row:
//
//   all          image, windows, output, precision, weak, flux, plan of the roots
//   decoding     coded image
//   normal       normal equations
//   eliminate    normal equations, scratch of factors, elimination
//   solve        normal equations, scratch of factors, factors of the precision, vectors of solve
//   resolution,  chi-square and sums of the model, sums over poles, scratch of the roots
//   model
#ifndef SPEXD_CUDA_PLAN_JOB_ARRAYS_H_
#define SPEXD_CUDA_PLAN_JOB_ARRAYS_H_

#include <cstddef>
#include <cstdint>

#include "cuda/plan/extract_plan.h"
#include "cuda/plan/job_shape.h"

namespace spexd::cuda {

// The fibres of a job, by bundles.
struct JobFibres {
  int first_bundle, bundles;  // index of the first in the PSF, and count
  int first_fibre, fibres;    // index of the first in the PSF, and count
  int bundle_size;
  int block = 1;  // fibres of a block; the last block of a bundle may lack some

  SPEXD_HOST_DEVICE int BundleOf(int fibre) const { return fibre / bundle_size; }
  SPEXD_HOST_DEVICE int FirstOf(int bundle) const { return bundle * bundle_size; }
  SPEXD_HOST_DEVICE int EndOf(int bundle) const {
    const int end = (bundle + 1) * bundle_size;
    return end < fibres ? end : fibres;
  }
  SPEXD_HOST_DEVICE int BlocksPerBundle() const { return (bundle_size + block - 1) / block; }
  SPEXD_HOST_DEVICE int BlockOf(int fibre) const {
    return block == 1 ? fibre : fibre / bundle_size * BlocksPerBundle() + fibre % bundle_size / block;
  }
  SPEXD_HOST_DEVICE int MemberOf(int fibre) const { return block == 1 ? 0 : fibre % bundle_size % block; }
  // The fibre of a member of a block; -1 where the bundle has none.
  SPEXD_HOST_DEVICE int FibreOf(int of_block, int member) const {
    const int bundle = of_block / BlocksPerBundle();
    const int fibre = FirstOf(bundle) + of_block % BlocksPerBundle() * block + member;
    return fibre < EndOf(bundle) ? fibre : -1;
  }
};

// The CCD image [row, column], float32, as a job brings it.
struct ImageArrays {
  float* pixels;
  float* ivar;
};

// Symmetric band matrices by diagonals: entry (j + k, j) is at values[(matrix * diagonals + k) * size + j].
struct BandArrays {
  int size, diagonals;
  double* values;
  // [matrix, j]: entries of column j count up to this diagonal. It falls by no more than one from column to
  // column, and ends with the matrix. Null: all diagonals count.
  int32_t* widths;
};

// A^T W A + Lambda by pairs of blocks (BlockPlan), A^T W p and coverage (core/extract/formulas.h) by fibres.
struct NormalArrays {
  int bins, reach, fibre_reach;
  BlockPlan blocks;
  int later_blocks;     // number of following blocks that a block may couple with
  double* coverage;     // [fibre, bin]
  double* data;         // A^T W p [fibre, bin]
  BandArrays own;       // D [block]
  double* between;      // O: unknown j of a block with j + k of a later one [apart - 1, block, k + reach, j]
  double* min_diagonal;  // [fibre]: the least of D's diagonal, in bins with data

  // Returns diagonals: at [k * size + j] unknown j of a block with j + k of the same block (k >= 0) or of the
  // block `apart` further.
  SPEXD_HOST_DEVICE double* Diagonals(int block, int apart) const {
    const int64_t of_later = int64_t{apart - 1} * blocks.count + block;
    return apart == 0 ? own.values + int64_t{block} * own.diagonals * blocks.size
                      : between + (of_later * (2 * blocks.reach + 1) + blocks.reach) * blocks.size;
  }
};

// Cholesky factors of band matrices, by tile columns (cuda/kernels/factor/factor.h).
struct FactorArrays {
  int columns, tiles;  // number of tile columns; most tiles below the diagonal one
  double* values;      // [matrix, tile column, 1 + tiles, lane, 2]
  int32_t* depths;     // [matrix, chunk]: tiles in use below the diagonal one, at most
  int32_t* ends;       // [matrix, tile column]: the last tile row that it reaches. It never falls.
  int32_t* starts;     // [matrix, tile row]: the first tile column that reaches it
};

// The elimination of each block's neighbours.
struct EliminationArrays {
  double* threshold;     // [block, unknown]: see EliminateArgs
  double* values;        // [block, chunk, extended]: scratch of the thresholds
  FactorArrays factors;  // factors of D
  // S [side, block], with the previous or the next blocks eliminated, and its factors; later the matrices of
  // a block's other fibres take their place.
  BandArrays sides;
  FactorArrays side_factors;
  // See EliminateArgs.
  float* change;
  int32_t *depth, *deepest, *work, *walks;
  double* factor_scratch;
  double* scratch;
  // Only for blocks of several fibres: P of blocks, the matrix of one fibre of each block and its coupling to
  // the others (cuda/kernels/factor/blocks.h).
  BandArrays blocks, member;
  double* member_coupling;  // [block, k + diagonals - 1, j]
};

// The state of a bundle's conjugate gradients.
struct SolveState {
  double norm, residual;           // |b|^2 and |b - A f|^2 in the norm of diag(A)^-1/2
  double projection, alpha, beta;  // r^T M r of the last step, M the preconditioner; its factors
  uint32_t arrived;                // parts that have stored a sum, of all sums so far
  int32_t steps;                   // number of steps after which it converged; 0: not yet
};

// The flux by conjugate gradients; vectors are [fibre, bin].
struct SolveArrays {
  FactorArrays factors;  // factors of the precision
  double *flux, *direction, *product;
  double* residual;                    // [2, fibre, bin]: of this step and of the one before
  double *preconditioned, *from_next;  // M r is the sum of what a bin's chunk and the next one give
  double* alternating;                 // P^-1 (1, -1, 1, ...)
  double* sums;                        // [which, fibre, chunk]
  SolveState* states;                  // [bundle]
};

struct ResolutionArrays {
  int32_t* widest;      // [fibre, chunk, kMaxPoles]: diagonals of P that a pole keeps
  int32_t* tasks;       // [RootKind, root_tasks]: see cuda/kernels/root/roots.cuh
  int32_t* task_count;  // [RootKind]
  int32_t* begun;       // [RootKind]: number of tasks given out to blocks that ask for them
  int32_t root_tasks;   // most tasks of a kind
  int32_t* poles;       // [fibre, chunk]
  double* pole_total;   // [fibre, chunk]: sum of weights
  double* pole_shift;   // [fibre, chunk, kMaxPoles]
  double* pole_weight;  // [fibre, chunk, kMaxPoles]: multiplied by the shift
  int32_t slots;        // slots of sums: groups of poles that are solved for side by side
  double* sums;         // [slot, fibre, bin, kPoleSums]
  double* scratch;
};

struct ModelArrays {
  Window* windows;        // [bundle]
  int32_t widest;         // columns of the widest window
  int64_t window_pixels;  // pixels reserved for each window in chi2
  double* chi2;           // [bundle, CCD row, column of the window]
  SpotSums* spots;        // [fibre, bin of the output]
};

// The result, bundle by bundle. A bundle's arrays follow each other, at these offsets from its start.
struct OutputArrays {
  std::byte* bundles;
  int64_t bundle_bytes;
  int bundle_size, bins;
  bool float32;
  int64_t residual;                   // double: |b - A f| / |b|
  int64_t root_error;                 // double: see BundleResult
  int64_t flux, ivar, chi2pix, mask;  // [fibre, bin] float32 or float64, as asked; mask uint32
  int64_t resolution;                 // [fibre, diagonal, bin]
  int64_t pixmask;                    // float64 results only
  int64_t model;                      // [CCD row, column of the window] float32, if asked for
};

struct JobArrays {
  JobFibres fibres;
  ImageArrays image;
  std::byte* coded;  // the image until it is decoded: DecodeArrays (coded_block.h)
  NormalArrays normal;
  EliminationArrays elimination;
  BandArrays precision;  // P [fibre]
  SolveArrays solve;
  ResolutionArrays resolution;
  ModelArrays model;
  OutputArrays output;
  int64_t coded_offset;                 // of `coded` in the block
  int64_t output_offset, output_bytes;  // all bundles' output in the block
  int64_t bytes;                        // size of the block
};

// Scratch sizes in doubles, decided by the kernels (cuda/kernels).
struct ScratchSizes {
  int64_t factor = 0, eliminate = 0, roots = 0;
};

// `block` null: computes the sizes only.
JobArrays LayOutJob(const ExtractPlan& plan, const JobShape& job, const ScratchSizes& scratch,
                    std::byte* block);

}  // namespace spexd::cuda

#endif  // SPEXD_CUDA_PLAN_JOB_ARRAYS_H_
