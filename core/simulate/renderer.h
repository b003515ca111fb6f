// Projects true spectra through the PSF onto the CCD.
#ifndef SPEXD_CORE_SIMULATE_RENDERER_H_
#define SPEXD_CORE_SIMULATE_RENDERER_H_

#include "absl/status/statusor.h"
#include "core/base/array.h"
#include "core/model/psf.h"
#include "core/model/truth.h"

namespace spexd {

// Expected electrons in each pixel [row, column]: the sum of spot x flux x step over fibres and wavelengths;
// light off the CCD is lost. Up to `threads` threads share the bundles; the result does not depend on how
// many. ResourceExhausted without memory. REQUIRES: CheckPsf(psf) is OK, a spectrum for each fibre in
// `truth`, two or more uniform wavelengths.
absl::StatusOr<Array<float, 2>> RenderTruth(const Psf& psf, const Truth& truth, int threads);

}  // namespace spexd

#endif  // SPEXD_CORE_SIMULATE_RENDERER_H_
