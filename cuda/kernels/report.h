// Stage "model": the spectra as they are reported.
#ifndef SPEXD_CUDA_KERNELS_REPORT_H_
#define SPEXD_CUDA_KERNELS_REPORT_H_

#include <cuda_runtime_api.h>

#include <cstdint>

#include "cuda/plan/job_arrays.h"

namespace spexd::cuda {

struct ReportArgs {
  int fibres, bins, pad;
  double bin_width;  // Angstrom
  ChunkPlan chunks;  // of the square roots
  BandArrays precision;
  const double* flux;   // f [fibre, bin]
  ResolutionArrays resolution;
  ModelArrays model;
  OutputArrays output;
};

// Writes flux, ivar, resolution, chi2pix, pixmask, mask and root_error, from the square root's sums over
// poles and the model's sums over spots. REQUIRES: the output has been cleared.
cudaError_t ReportSpectra(const ReportArgs& args, cudaStream_t stream);

}  // namespace spexd::cuda

#endif  // SPEXD_CUDA_KERNELS_REPORT_H_
