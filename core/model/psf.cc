#include "core/model/psf.h"

#include <cmath>

#include "absl/strings/str_format.h"
#include "core/base/status_macros.h"

namespace spexd {
namespace {

absl::Status CheckRange(const char* name, int value, int least, int most) {
  if (value >= least && value <= most) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrFormat("PSF: %s is %d, must be %d to %d", name, value, least, most));
}

// Checks everything but the spot model.
absl::Status CheckTraces(const Psf& psf) {
  SPEXD_RETURN_IF_ERROR(CheckRange("NPIX_Y", psf.rows, 1, kMaxCcdSide));
  SPEXD_RETURN_IF_ERROR(CheckRange("NPIX_X", psf.columns, 1, kMaxCcdSide));
  SPEXD_RETURN_IF_ERROR(CheckRange("the number of fibres", psf.fibres, 1, kMaxFibres));
  if (!std::isfinite(psf.psferr) || psf.psferr < 0) {
    return absl::InvalidArgumentError(
        absl::StrFormat("PSF: PSFERR is %g, must be finite and >= 0", psf.psferr));
  }
  SPEXD_RETURN_IF_ERROR(CheckTable("XTRACE", psf.traces.x, psf.fibres));
  return CheckTable("YTRACE", psf.traces.y, psf.fibres);
}

}  // namespace

int64_t PsfBytes(const Psf& psf) {
  const int64_t traces = psf.traces.x.coeff.size() + psf.traces.y.coeff.size();
  return static_cast<int64_t>(sizeof(Psf)) + traces * static_cast<int64_t>(sizeof(double)) +
         std::visit([](const auto& model) { return model.Bytes(); }, psf.spots);
}

bool IsComplete(const Psf& psf) {
  return std::visit([](const auto& model) { return model.IsComplete(); }, psf.spots);
}

absl::Status CheckPsfOutline(const Psf& psf) {
  SPEXD_RETURN_IF_ERROR(CheckTraces(psf));
  return std::visit([&psf](const auto& model) { return model.CheckOutline(psf.fibres); }, psf.spots);
}

absl::Status CheckPsf(const Psf& psf) {
  SPEXD_RETURN_IF_ERROR(CheckTraces(psf));
  return std::visit([&psf](const auto& model) { return model.Check(psf.fibres); }, psf.spots);
}

}  // namespace spexd
