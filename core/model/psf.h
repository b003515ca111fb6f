// The PSF of a multi-fibre spectrograph, as plain values: traces and a model of spots.
#ifndef SPEXD_CORE_MODEL_PSF_H_
#define SPEXD_CORE_MODEL_PSF_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "core/model/spots/spot_model.h"
#include "core/model/traces/traces.h"

namespace spexd {

struct Psf {
  int rows = 0;     // NPIX_Y: CCD rows, the wavelength direction
  int columns = 0;  // NPIX_X
  int fibres = 0;
  int fibre_min = 0;     // FIBERMIN: number of the first fibre
  double psferr = 0.01;  // PSFERR: fractional error of the model
  double wave_min = 0;   // wavelengths of the default grid, Angstrom
  double wave_max = 0;
  Traces traces;
  SpotModel spots;
  std::string camera;        // CAMERA as the file states it, "" if it has none
  std::string original_psf;  // IN_PSF of the file, "" if it has none
  std::string content_hash;  // SHA-256 of the file's bytes, "" if made in memory

  // The pixels of every spot.
  const Stamp& stamp() const {
    return std::visit([](const auto& model) -> const Stamp& { return model.GetStamp(); }, spots);
  }
  int spot_columns() const { return stamp().x.size; }
  int spot_rows() const { return stamp().y.size; }
};

// Limits that are checked before memory is taken for a PSF.
inline constexpr int kMaxFibres = 20000;
inline constexpr int kMaxCcdSide = 32768;

// The model of a PSF with Gauss-Hermite spots. REQUIRES: it is that model.
inline GaussHermiteSpots& GaussHermite(Psf& psf) { return std::get<GaussHermiteSpots>(psf.spots); }
inline const GaussHermiteSpots& GaussHermite(const Psf& psf) {
  return std::get<GaussHermiteSpots>(psf.spots);
}

// Bytes of the PSF's tables, including those that an outline lacks.
int64_t PsfBytes(const Psf& psf);

// Whether spots can be evaluated: not in an outline (ReadPsfOutline), which lacks large tables.
bool IsComplete(const Psf& psf);

// Checks like CheckPsf, except for the tables that an outline lacks.
absl::Status CheckPsfOutline(const Psf& psf);

// InvalidArgument, naming the value and the limit, unless every table has `fibres` rows, finite coefficients
// and a proper domain, and all sizes are positive and within the limits above and those of the spot model.
// Whether the values of the series are finite also depends on the grid: CheckGrid (core/plan/grid_plan.h).
absl::Status CheckPsf(const Psf& psf);

}  // namespace spexd

#endif  // SPEXD_CORE_MODEL_PSF_H_
