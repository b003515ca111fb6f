// The frames of an exposure's cameras as spectra of its targets.
#ifndef SPEXD_CORE_PRODUCTS_JOINT_EXPOSURE_SPECTRA_H_
#define SPEXD_CORE_PRODUCTS_JOINT_EXPOSURE_SPECTRA_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "core/model/frame.h"
#include "core/model/target_spectra.h"

namespace spexd {

// Whether the frame has the sky in it: not where its header names the sky that was subtracted (IN_SKY, as
// desispec and SkySubtracted write), nor where its file is named as the pipeline names such frames (sframe-,
// cframe-), nor a coadd. `name`: of its file.
bool HasSky(const Frame& frame, const std::string& name);

// Frames with the same text are of one exposure and spectrograph: NIGHT, EXPID and the number of CAMERA. ""
// where a header lacks EXPID or CAMERA: the frame is an exposure of its own. `cards`: of HDU FLUX.
std::string ExposureKey(const std::vector<std::string>& cards);
// The number of the exposure alone, EXPID; "" where the header lacks it.
std::string ExposureNumber(const std::vector<std::string>& cards);

struct NamedFrame {
  std::string name;  // of its file, for errors
  Frame frame;       // without the sky
};
// An arm is named by the letter of CAMERA; where there is no such card, by the band of its wavelengths. The
// order of the frames does not matter: name, cards and fibermap are those of the frame with the shortest
// wavelengths. InvalidArgument that names the files: "A and B are not of one exposure: .." (ExposureKey,
// HELIOCOR or the TARGETIDs of their rows differ), "camera b was there before", no FIBERMAP. Moves the
// spectra.
absl::StatusOr<TargetSpectra> JoinFrames(std::vector<NamedFrame> frames);

}  // namespace spexd

#endif  // SPEXD_CORE_PRODUCTS_JOINT_EXPOSURE_SPECTRA_H_
