// Frames added target by target: on one grid, or shifted against each other by small velocities.
#ifndef SPEXD_CORE_PRODUCTS_COADD_FRAMES_H_
#define SPEXD_CORE_PRODUCTS_COADD_FRAMES_H_

#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/analysis/coadd_sums.h"
#include "core/model/frame.h"

namespace spexd {

struct CoaddedFrames {
  // A row for each target, in the order in which the frames have them first. Its fibermap has TARGETID,
  // TARGET_RA, TARGET_DEC, OBJTYPE, COADD_FIBERSTATUS (bits that all exposures have) and COADD_NUMEXP.
  Frame frame;
  std::vector<int64_t> target_ids;  // [row]
  std::vector<int64_t> exposures;   // [row]: how many were added
};

// What fibermaps say of a target: of its first exposure, the status of all.
struct CoaddedTarget {
  int64_t id = 0;
  int64_t exposures = 0;   // that were added
  int64_t status = 0;      // bits of FIBERSTATUS that all exposures have, those left out included
  std::string type;        // OBJTYPE
  double ra = 0, dec = 0;  // degrees
};

// The spectra of an exposure that are in a coadd. `exposure` is what two readings of the same light share:
// EXPID and CAMERA or, for frames without EXPID, the checksum of their fluxes. `name` is the frame's.
struct AddedExposure {
  std::string exposure, name;
  std::vector<int64_t> fibres;  // sorted
};

// What frames add up to, one after the other. Exposures are of one target if their fibermaps' TARGETID is the
// same. Sky fibres are left out.
class CoaddFrameSums {
 public:
  // InvalidArgument that names the frame (`name`), which then counts nothing: its grid differs from the first
  // one's, its fibermap lacks TARGETID or OBJTYPE, or a frame of the same exposure and camera that has one of
  // its fibres was added.
  absl::Status Add(const Frame& frame, const std::string& name);
  // InvalidArgument without any target.
  absl::StatusOr<CoaddedFrames> Result() const;

 private:
  struct Target {
    CoaddedTarget target;
    CoaddSums sums;
  };

  WavelengthGrid grid_;          // without bins before the first frame
  FrameOrigin origin_;           // of the first frame, without its fibermap
  std::vector<Target> targets_;  // in the order in which the frames have them first
  std::vector<AddedExposure> added_;
  std::unordered_map<int64_t, size_t> position_;  // of each target
};

// Where the velocities of exposures (ShiftedExposure) come from; one of the three.
struct ShiftSource {
  std::vector<double> velocities;  // [frame], km/s
  std::string column;              // of the frames' fibermaps: a velocity of each fibre, km/s
  bool barycentric = false;        // pointing and time of each frame's header: the coadd is barycentric
};

// The same for exposures whose wavelengths differ by small velocities; the coadd is on the first frame's
// grid. Other grids may begin and end elsewhere, in the same steps. What is returned does not depend on
// `threads`. InvalidArgument also for a shift that CheckShifted refuses or that the frame does not tell, and
// for frames with a barycentric correction where `barycentric` would correct them again; it names the frame.
absl::StatusOr<CoaddedFrames> CoaddShiftedFrames(const std::vector<Frame>& frames,
                                                 const std::vector<std::string>& names,
                                                 const ShiftSource& shifts, int threads);

// Writes what desispec's read_spectra takes, and ReadFrame: HDUs FIBERMAP and, with the band's letter,
// B_WAVELENGTH, B_FLUX, B_IVAR, B_MASK, B_RESOLUTION.
absl::Status WriteCoadd(const CoaddedFrames& coadd, const std::string& path);
// The bytes of that file.
absl::StatusOr<std::string> CoaddFile(const CoaddedFrames& coadd);

}  // namespace spexd

#endif  // SPEXD_CORE_PRODUCTS_COADD_FRAMES_H_
