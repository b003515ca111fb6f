// Sums over frames on a device: arguments and launches of their kernels. Every sum has a fixed order.
#ifndef SPEXD_CUDA_ANALYSIS_SUMS_SUMS_H_
#define SPEXD_CUDA_ANALYSIS_SUMS_SUMS_H_

#include <cuda_runtime_api.h>

#include <cstdint>

#include "cuda/analysis/spectra_arrays.h"

namespace spexd::cuda {

// Sums of each target: W = ivar, W flux [target, bin] and W R [target, diagonal, bin], W being that of the
// element's row. Sums of W R in float32 keep 1e-6 over some hundred exposures.
struct ExposureArrays {
  int targets = 0, bins = 0;
  double *weight = nullptr, *flux = nullptr;
  float* resolution = nullptr;
};

struct AddExposuresArgs {
  ExposureArrays sums;
  SpectraArrays from;
  int rows = 0;
  const int32_t *row = nullptr, *target = nullptr;  // no target twice
};
cudaError_t AddExposures(const AddExposuresArgs& args, cudaStream_t stream);

// The coadds; 0 without data, and outside of the matrix.
struct ReadExposuresArgs {
  ExposureArrays sums;
  float *flux = nullptr, *ivar = nullptr;  // [target, bin]
  float* resolution = nullptr;             // [target, diagonal, bin]
};
cudaError_t ReadExposures(const ReadExposuresArgs& args, cudaStream_t stream);

// sums [bin] = keep sums + the sum of x's rows.
struct AddRowsArgs {
  const double* x = nullptr;  // [row, bin]
  int rows = 0, bins = 0;
  double keep = 0;
  double* sums = nullptr;
};
cudaError_t AddRows(const AddRowsArgs& args, cudaStream_t stream);

// Products of vectors with the covariance G / n - m m^T about the mean m = sums / n, from those with G.
struct CovarianceArgs {
  int vectors = 0, bins = 0;
  const double* sums = nullptr;  // [bin]
  double snapshots = 0;          // n
  const double* dots = nullptr;  // [vector]: of the vectors with `sums`
  double* products = nullptr;    // [vector, bin]: with G; overwritten
};
cudaError_t MakeCovarianceProducts(const CovarianceArgs& args, cudaStream_t stream);

// to += factor from, of `count` values.
cudaError_t AddScaledVectors(double factor, const double* from, int64_t count, double* to,
                             cudaStream_t stream);

}  // namespace spexd::cuda

#endif  // SPEXD_CUDA_ANALYSIS_SUMS_SUMS_H_
