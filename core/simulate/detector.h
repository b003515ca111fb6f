// Effects of the detector: noise, cosmic rays, dead columns and saturated holes.
#ifndef SPEXD_CORE_SIMULATE_DETECTOR_H_
#define SPEXD_CORE_SIMULATE_DETECTOR_H_

#include "core/base/array.h"
#include "core/fits/writers.h"
#include "core/model/psf.h"
#include "core/simulate/simulator.h"

namespace spexd {

// Fills in pixels, ivar, mask and readnoise. `expected`: expected electrons. `options` must be complete
// (CompleteOptions). ivar is 1 / (expected electrons + read noise^2), rounded to a multiple of kIvarStep.
void Expose(const SimulatorOptions& options, const Psf& psf, const Array<float, 2>& expected,
            PreprocFile& preproc);

}  // namespace spexd

#endif  // SPEXD_CORE_SIMULATE_DETECTOR_H_
