// Frames of a spectrograph's cameras, with targets and fluxes that a test chooses.
#ifndef SPEXD_TESTS_ANALYSIS_COADD_CAMERA_FRAMES_H_
#define SPEXD_TESTS_ANALYSIS_COADD_CAMERA_FRAMES_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/model/frame.h"
#include "core/model/wavelength_grid.h"

namespace spexd::testing {

// Returns the grid of a camera's frames, with 40 (b), 50 (r) or 60 (z) bins.
WavelengthGrid GridOfCamera(char letter);

struct FibreOfCamera {
  int64_t target = 0;  // TARGETID; TARGET_RA is a tenth of it
  float flux = 1;      // of all bins, electron/Angstrom
  int64_t status = 0;  // FIBERSTATUS
  std::string type = "TGT";
};

// Returns a frame of spectrograph 0 on GridOfCamera, with ivar 4 and an identity as the resolution. `letter`:
// that of the camera. With an exposure, its header has EXPID and NIGHT 20290101.
Frame FrameOfCamera(char letter, std::optional<int> exposure, const std::vector<FibreOfCamera>& fibres);

// Returns the frame without the card with this keyword.
Frame WithoutCard(Frame frame, const std::string& keyword);

}  // namespace spexd::testing

#endif  // SPEXD_TESTS_ANALYSIS_COADD_CAMERA_FRAMES_H_
