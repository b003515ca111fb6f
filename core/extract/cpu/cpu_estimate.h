// Estimate of a job on the CPU engine, from a PSF's header values and a grid.
#ifndef SPEXD_CORE_EXTRACT_CPU_CPU_ESTIMATE_H_
#define SPEXD_CORE_EXTRACT_CPU_CPU_ESTIMATE_H_

#include <cstdint>

#include "core/extract/engine.h"

namespace spexd {

// Memory of one bundle, see cpu::BundleSolver::Bytes.
int64_t LeastBytesForCpu(const Psf& psf, const WavelengthGrid& grid, int fibres);

// Estimate for `threads` threads that together may hold max_workspace_bytes; see Engine::Estimate.
JobEstimate EstimateForCpu(const JobOutline& outline, int threads, int64_t max_workspace_bytes);

}  // namespace spexd

#endif  // SPEXD_CORE_EXTRACT_CPU_CPU_ESTIMATE_H_
