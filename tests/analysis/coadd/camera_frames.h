// Frames of the cameras of a spectrograph, with targets and fluxes as a test wants them.
#ifndef SPEXD_TESTS_ANALYSIS_COADD_CAMERA_FRAMES_H_
#define SPEXD_TESTS_ANALYSIS_COADD_CAMERA_FRAMES_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/model/frame.h"
#include "core/model/wavelength_grid.h"

namespace spexd::testing {

// The grid of a camera's frames: of 40 (b), 50 (r) or 60 (z) bins.
WavelengthGrid GridOfCamera(char letter);

struct FibreOfCamera {
  int64_t target = 0;  // TARGETID; TARGET_RA is a tenth of it
  float flux = 1;      // of all bins, electron/Angstrom
  int64_t status = 0;  // FIBERSTATUS
  std::string type = "TGT";
};

// A frame of spectrograph 0 on GridOfCamera, with ivar 4 and an identity as the resolution. `letter`: of the
// camera. EXPID, and NIGHT 20290101, are in its header where an exposure is given.
Frame FrameOfCamera(char letter, std::optional<int> exposure, const std::vector<FibreOfCamera>& fibres);

// The same without the card of this keyword.
Frame WithoutCard(Frame frame, const std::string& keyword);

}  // namespace spexd::testing

#endif  // SPEXD_TESTS_ANALYSIS_COADD_CAMERA_FRAMES_H_
