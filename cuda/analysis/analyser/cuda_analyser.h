// Products of spectra on one GPU. Products that have no kernels are made by processors.
#ifndef SPEXD_CUDA_ANALYSIS_ANALYSER_CUDA_ANALYSER_H_
#define SPEXD_CUDA_ANALYSIS_ANALYSER_CUDA_ANALYSER_H_

#include <memory>

#include "absl/status/statusor.h"
#include "core/analysis/analyser/analyser.h"
#include "cuda/loader/cuda_options.h"

namespace spexd::cuda {

// Returns FailedPrecondition if there is no driver, no such device, the device is too old, or cuBLAS is
// missing; the message says which.
absl::StatusOr<std::unique_ptr<Analyser>> MakeCudaAnalyser(const CudaAnalyserOptions& options);

}  // namespace spexd::cuda

#endif  // SPEXD_CUDA_ANALYSIS_ANALYSER_CUDA_ANALYSER_H_
