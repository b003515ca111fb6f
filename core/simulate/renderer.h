// Projection of true spectra through the PSF onto the CCD.
#ifndef SPEXD_CORE_SIMULATE_RENDERER_H_
#define SPEXD_CORE_SIMULATE_RENDERER_H_

#include "absl/status/statusor.h"
#include "core/base/array.h"
#include "core/model/psf.h"
#include "core/model/truth.h"

namespace spexd {

// The expected electrons in each pixel [row, column]: the sum of spot x flux x step over fibres and
// wavelengths. Light off the CCD is lost. Up to `threads` threads share the bundles; the result does not
// depend on their number. ResourceExhausted if there is not enough memory. REQUIRES: CheckPsf(psf) is OK;
// `truth` has a spectrum for each fibre and two or more uniform wavelengths.
absl::StatusOr<Array<float, 2>> RenderTruth(const Psf& psf, const Truth& truth, int threads);

}  // namespace spexd

#endif  // SPEXD_CORE_SIMULATE_RENDERER_H_
