// The barycentric correction: it converts observed wavelengths to those of an observer at rest in the solar
// system.
#ifndef SPEXD_CORE_FRAME_BARYCENTRIC_H_
#define SPEXD_CORE_FRAME_BARYCENTRIC_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace spexd {

// Pointing and time of an observation.
struct Pointing {
  double ra = 0;  // degrees, ICRS
  double dec = 0;
  double mjd = 0;  // UTC, middle of the exposure
};

// Finds the pointing. Position: TARGTRA and TARGTDEC, else SKYRA and SKYDEC, TELRA and TELDEC, RA and DEC.
// Time: MJD-OBS, else MJD, plus half of EXPTIME, which is 0 if it is missing. Each is looked for in the image
// header first, then in the fibermap's. InvalidArgument, naming the keywords, if one is missing or out of
// range.
absl::StatusOr<Pointing> FindPointing(const std::vector<std::string>& image_cards,
                                      const std::vector<std::string>& fibermap_cards);

// The factor 1 + v/c for an observer at Kitt Peak, to a few 1e-11 of astropy's radial_velocity_correction:
// the special-relativistic Doppler factor over the redshift of the Sun's and the Earth's potential (Wright &
// Eastman 2014, PASP 126, 838, equation 28, without the star's own motion). The barycentric wavelength is the
// measured one times this factor.
absl::StatusOr<double> BarycentricFactor(const Pointing& pointing);

}  // namespace spexd

#endif  // SPEXD_CORE_FRAME_BARYCENTRIC_H_
