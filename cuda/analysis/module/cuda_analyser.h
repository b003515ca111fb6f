// Products of spectra on one GPU; those without kernels are made by processors.
#ifndef SPEXD_CUDA_ANALYSIS_MODULE_CUDA_ANALYSER_H_
#define SPEXD_CUDA_ANALYSIS_MODULE_CUDA_ANALYSER_H_

#include <memory>

#include "absl/status/statusor.h"
#include "core/analysis/analyser/analyser.h"
#include "cuda/loader/cuda_analyser_options.h"

namespace spexd::cuda {

// Errors as MakeCudaAnalyserFunction's.
absl::StatusOr<std::unique_ptr<Analyser>> MakeCudaAnalyser(const CudaAnalyserOptions& options);

}  // namespace spexd::cuda

#endif  // SPEXD_CUDA_ANALYSIS_MODULE_CUDA_ANALYSER_H_
