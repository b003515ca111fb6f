// The checks that every engine makes before any work, with the same messages.
#ifndef SPEXD_CORE_EXTRACT_REQUEST_CHECKS_H_
#define SPEXD_CORE_EXTRACT_REQUEST_CHECKS_H_

#include "absl/status/status.h"
#include "core/extract/engine.h"

namespace spexd {

// InvalidArgument: a bad PSF, a grid that does not fit it, or a bundle size out of range.
absl::Status CheckPreparation(const Psf& psf, const WavelengthGrid& grid, int bundle_size);

// InvalidArgument: an image that differs from the PSF's CCD in size. REQUIRES: one of image, coded and planes
// is set.
absl::Status CheckImage(const RequestImage& image, const Psf& psf);

// InvalidArgument: as CheckImage; also fibres outside the PSF, and psferr or regularize negative or not
// finite. REQUIRES: as CheckImage; request.prepared is set.
absl::Status CheckRequest(const ExtractRequest& request);

}  // namespace spexd

#endif  // SPEXD_CORE_EXTRACT_REQUEST_CHECKS_H_
