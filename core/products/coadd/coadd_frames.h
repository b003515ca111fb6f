// Frames added target by target, arm by arm: on one grid, or shifted against each other by small velocities.
#ifndef SPEXD_CORE_PRODUCTS_COADD_COADD_FRAMES_H_
#define SPEXD_CORE_PRODUCTS_COADD_COADD_FRAMES_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/analysis/coadd_sums.h"
#include "core/model/frame.h"
#include "core/products/coadd/coadd_index.h"

namespace spexd {

// The sums of the frames of cameras of one letter.
struct CoaddedArm {
  char name = 0;  // B, R or Z; see ArmOf
  // A row for each target, in the order in which the frames of all arms have them first. A target without a
  // frame in the arm has flux, ivar and resolution 0 and mask kMaskNoData. The fibermap is the same in all
  // arms: TARGETID, TARGET_RA, TARGET_DEC, OBJTYPE, COADD_FIBERSTATUS (bits that all exposures have in all
  // arms) and COADD_NUMEXP. Header: of the arm's first frame.
  Frame frame;
};

struct CoaddedFrames {
  std::vector<CoaddedArm> arms;            // by their first wavelength
  std::vector<int64_t> target_ids;         // [row]
  std::vector<int64_t> exposures;          // [row]: how many were added; the cameras of one EXPID count once
  std::optional<RawTable> exposure_table;  // EXP_FIBERMAP; see CoaddIndex::ExposureTable
};

// What frames add up to, one after the other. Frames are of one arm if ArmOf says so. Exposures are of one
// target if their fibermaps' TARGETID is the same. Sky fibres are left out.
class CoaddFrameSums {
 public:
  // InvalidArgument that names the frame (`name`), which then counts nothing: its grid differs from the first
  // one's of its arm, or what CoaddIndex::Add refuses.
  absl::Status Add(const Frame& frame, const std::string& name);
  // InvalidArgument without any target.
  absl::StatusOr<CoaddedFrames> Result() const;

 private:
  CoaddIndex index_;
  // [arm][target]: none where nothing was added. Arms may have fewer than there are targets.
  std::vector<std::vector<std::optional<CoaddSums>>> sums_;
};

// Where the velocities of exposures (ShiftedExposure) come from; one of the three.
struct ShiftSource {
  std::vector<double> velocities;  // [frame], km/s
  std::string column;              // of the frames' fibermaps: a velocity of each fibre, km/s
  bool barycentric = false;        // pointing and time of each frame's header: the coadd is barycentric
};

// The same for exposures whose wavelengths differ by small velocities; each arm is on the grid of its first
// frame. Other grids of the arm may begin and end elsewhere, in the same steps. What is returned does not
// depend on `threads`. InvalidArgument also for a shift that CheckShifted refuses or that the frame does not
// tell, and for frames with a barycentric correction where `barycentric` would correct them again; it names
// the frame.
absl::StatusOr<CoaddedFrames> CoaddShiftedFrames(const std::vector<Frame>& frames,
                                                 const std::vector<std::string>& names,
                                                 const ShiftSource& shifts, int threads);

// Writes what desispec's read_spectra takes: HDUs FIBERMAP and, with the letter of each arm, B_WAVELENGTH,
// B_FLUX, B_IVAR, B_MASK, B_RESOLUTION; then EXP_FIBERMAP and SCORES. ReadFrame takes the file of one arm.
// The first header is that of the first arm, without CAMERA if there are several. InvalidArgument for arms of
// the same name, or that have other rows than target_ids.
absl::Status WriteCoadd(const CoaddedFrames& coadd, const std::string& path);
// The bytes of that file.
absl::StatusOr<std::string> CoaddFile(const CoaddedFrames& coadd);

}  // namespace spexd

#endif  // SPEXD_CORE_PRODUCTS_COADD_COADD_FRAMES_H_
