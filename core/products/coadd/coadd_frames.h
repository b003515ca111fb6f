// Coadds of frames, target by target and arm by arm, on one grid or shifted against each other by small
// velocities.
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

// The coadd of the frames of cameras with one letter.
struct CoaddedArm {
  char name = 0;  // B, R or Z (ArmOf)
  // The coadd as a frame, with a row for each target, in the order in which targets first occur in the frames
  // of all arms. A target without a frame in the arm has flux, ivar and resolution 0 and mask kMaskNoData.
  // The fibermap is the same in all arms: TARGETID, TARGET_RA, TARGET_DEC, OBJTYPE, COADD_FIBERSTATUS (bits
  // that all exposures have in all arms) and COADD_NUMEXP. The header is that of the arm's first frame.
  Frame frame;
};

struct CoaddedFrames {
  std::vector<CoaddedArm> arms;            // ordered by first wavelength
  std::vector<int64_t> target_ids;         // [row]
  std::vector<int64_t> exposures;          // [row]: number added; the cameras of one EXPID count once
  std::optional<RawTable> exposure_table;  // EXP_FIBERMAP (CoaddIndex::ExposureTable)
};

// The sums of frames that are added one after the other. ArmOf decides to which arm a frame belongs.
// Exposures with the same TARGETID in their fibermaps are of one target. Sky fibres are left out.
class CoaddFrameSums {
 public:
  // Adds a frame. InvalidArgument, naming the frame (`name`), if its grid differs from that of its arm's
  // first frame, or CoaddIndex::Add refuses it; nothing is then added.
  absl::Status Add(const Frame& frame, const std::string& name);
  // The coadd so far. InvalidArgument if there is no target.
  absl::StatusOr<CoaddedFrames> Result() const;

 private:
  CoaddIndex index_;
  // [arm][target]: none if nothing was added. Arms may have fewer elements than there are targets.
  std::vector<std::vector<std::optional<CoaddSums>>> sums_;
};

// The source of the velocities of exposures (ShiftedExposure). One of the three is set.
struct ShiftSource {
  std::vector<double> velocities;  // [frame], km/s
  std::string column;              // column of the frames' fibermaps with a velocity of each fibre, km/s
  // Whether velocities are computed from pointing and time in each frame's header. The coadd is then
  // barycentric.
  bool barycentric = false;
};

// Coadds exposures whose wavelengths differ by small velocities. Each arm is on the grid of its first frame;
// other grids of the arm may begin and end elsewhere but have the same step. The result does not depend on
// `threads`. InvalidArgument, naming the frame, as for CoaddFrameSums; also for a shift that CheckShifted
// refuses or that the frame does not state, and for frames with a barycentric correction that `barycentric`
// would correct again.
absl::StatusOr<CoaddedFrames> CoaddShiftedFrames(const std::vector<Frame>& frames,
                                                 const std::vector<std::string>& names,
                                                 const ShiftSource& shifts, int threads);

// Writes a file for desispec's read_spectra: HDUs FIBERMAP and, with the letter of each arm, B_WAVELENGTH,
// B_FLUX, B_IVAR, B_MASK and B_RESOLUTION; then EXP_FIBERMAP and SCORES. ReadFrame can read the file of one
// arm. The first header is that of the first arm, without CAMERA if there are several. InvalidArgument if two
// arms have the same name, or an arm has other rows than target_ids.
absl::Status WriteCoadd(const CoaddedFrames& coadd, const std::string& path);
// The bytes of the file that WriteCoadd writes.
absl::StatusOr<std::string> CoaddFile(const CoaddedFrames& coadd);

}  // namespace spexd

#endif  // SPEXD_CORE_PRODUCTS_COADD_COADD_FRAMES_H_
