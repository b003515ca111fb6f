// The estimate of a job on the CPU engine, from a PSF's header values and a grid.
#ifndef SPEXD_CORE_EXTRACT_CPU_CPU_ESTIMATE_H_
#define SPEXD_CORE_EXTRACT_CPU_CPU_ESTIMATE_H_

#include <cstdint>

#include "core/extract/engine.h"

namespace spexd {

// Memory of one bundle (cpu::BundleSolver::Bytes).
int64_t LeastBytesForCpu(const Psf& psf, const WavelengthGrid& grid, int fibres);

// The estimate for `threads` threads that together may hold max_workspace_bytes (Engine::Estimate).
JobEstimate EstimateForCpu(const JobOutline& outline, int threads, int64_t max_workspace_bytes);

}  // namespace spexd

#endif  // SPEXD_CORE_EXTRACT_CPU_CPU_ESTIMATE_H_
