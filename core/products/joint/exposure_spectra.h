// The frames of an exposure's cameras, as spectra of its targets.
#ifndef SPEXD_CORE_PRODUCTS_JOINT_EXPOSURE_SPECTRA_H_
#define SPEXD_CORE_PRODUCTS_JOINT_EXPOSURE_SPECTRA_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "core/model/frame.h"
#include "core/model/target_spectra.h"

namespace spexd {

// Whether the sky is still in the frame. It is not in a coadd, in a frame whose header names the subtracted
// sky (IN_SKY, as desispec and SkySubtracted write it), or in one whose file has a name that the pipeline
// gives to such frames (sframe-, cframe-). `name`: that of the file.
bool HasSky(const Frame& frame, const std::string& name);

// The key of a frame's exposure and spectrograph: NIGHT, EXPID and the number of CAMERA. Frames with the same
// key belong together. "" if the header lacks EXPID or CAMERA; the frame is then an exposure of its own.
// `cards`: those of HDU FLUX.
std::string ExposureKey(const std::vector<std::string>& cards);
// The number of the exposure, EXPID; "" if the header lacks it.
std::string ExposureNumber(const std::vector<std::string>& cards);

struct NamedFrame {
  std::string name;  // name of the file, for errors
  Frame frame;       // the frame without the sky
};
// Joins frames into spectra of targets. An arm is named by the letter of CAMERA or, without such a card, by
// the band of its wavelengths. The order of the frames does not matter: name, cards and fibermap are those of
// the frame with the shortest wavelengths. InvalidArgument, naming the files: "A and B are not of one
// exposure: .." (ExposureKey, HELIOCOR or the TARGETIDs of their rows differ), "camera b was there before",
// or no FIBERMAP. Moves the spectra.
absl::StatusOr<TargetSpectra> JoinFrames(std::vector<NamedFrame> frames);

}  // namespace spexd

#endif  // SPEXD_CORE_PRODUCTS_JOINT_EXPOSURE_SPECTRA_H_
