#include "core/extract/request_checks.h"

#include <cmath>
#include <utility>

#include "absl/strings/str_format.h"
#include "core/base/status_macros.h"
#include "core/plan/grid_plan.h"

namespace spexd {

absl::Status CheckPreparation(const Psf& psf, const WavelengthGrid& grid, int bundle_size) {
  SPEXD_RETURN_IF_ERROR(CheckPsf(psf));
  SPEXD_RETURN_IF_ERROR(CheckGrid(psf, grid));
  if (bundle_size < 1 || bundle_size > kMaxFibres) {
    return absl::InvalidArgumentError(
        absl::StrFormat("bundle size: %d, must be 1 to %d", bundle_size, kMaxFibres));
  }
  return absl::OkStatus();
}

absl::Status CheckImage(const RequestImage& request, const Psf& psf) {
  const ImagePlanes planes = PlanesOf(request);
  const CodedImage* const coded = request.coded.get();
  const int rows = coded != nullptr ? coded->rows : planes.rows,
            columns = coded != nullptr ? coded->columns : planes.columns;
  if (rows != psf.rows || columns != psf.columns) {
    return absl::InvalidArgumentError(absl::StrFormat(
        "image: %d x %d pixels, the PSF is for a CCD of %d x %d", rows, columns, psf.rows, psf.columns));
  }
  if (const Image* image = request.image.get();
      coded == nullptr && image != nullptr && image->ivar.shape() != image->pixels.shape()) {
    return absl::InvalidArgumentError(absl::StrFormat("ivar: %d x %d pixels, the image has %d x %d",
                                                      image->ivar.shape(0), image->ivar.shape(1), rows,
                                                      columns));
  }
  return absl::OkStatus();
}

absl::Status CheckRequest(const ExtractRequest& request) {
  const Psf& psf = *request.prepared->psf();
  SPEXD_RETURN_IF_ERROR(CheckImage(request, psf));
  const FibreRange& fibres = request.fibres;
  if (fibres.first < 0 || fibres.count < 1 || fibres.count > psf.fibres - fibres.first) {
    return absl::InvalidArgumentError(absl::StrFormat("fibres: %d from %d on, the PSF has 0 to %d",
                                                      fibres.count, fibres.first, psf.fibres - 1));
  }
  if (request.on_device != nullptr && !request.float32) {
    return absl::InvalidArgumentError("spectra stay on a device as float32 only");
  }
  for (const auto& [name, value] :
       {std::pair{"psferr", request.psferr}, std::pair{"regularize", request.regularize}}) {
    if (!std::isfinite(value) || value < 0) {
      return absl::InvalidArgumentError(absl::StrFormat("%s: %g, must be finite and >= 0", name, value));
    }
  }
  return absl::OkStatus();
}

}  // namespace spexd
