// Estimate of a job on a device, from a PSF's header values and a grid, before anything is on the device.
#ifndef SPEXD_CUDA_RUNTIME_CUDA_ESTIMATE_H_
#define SPEXD_CUDA_RUNTIME_CUDA_ESTIMATE_H_

#include "core/extract/engine.h"
#include "cuda/plan/extract_plan.h"

namespace spexd::cuda {

// See Engine::Estimate. device_bytes counts the PSF and the whole job's workspace, host_bytes the page-locked
// PSF, image and output.
JobEstimate EstimateForCuda(const JobOutline& outline, const PlanOptions& options);

}  // namespace spexd::cuda

#endif  // SPEXD_CUDA_RUNTIME_CUDA_ESTIMATE_H_
