// The arms and targets of a coadd, and which rows of its frames are added to which.
#ifndef SPEXD_CORE_PRODUCTS_COADD_COADD_INDEX_H_
#define SPEXD_CORE_PRODUCTS_COADD_COADD_INDEX_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/model/frame.h"
#include "core/model/wavelength_grid.h"

namespace spexd {

// An exposure of a target by one fibre, with all its cameras.
struct TargetExposure {
  size_t exposure = 0;  // its number among the coadd's exposures
  int64_t fibre = 0;
  int64_t status = 0;  // bits of FIBERSTATUS that any of its frames has
  bool added = false;  // the spectrum of a camera at least counts
};

// What fibermaps say of a target: of its first row, the status of all.
struct CoaddTarget {
  int64_t id = 0;
  int64_t status = 0;      // bits of FIBERSTATUS that all rows have, those left out included
  std::string type;        // OBJTYPE
  double ra = 0, dec = 0;  // degrees
  std::vector<TargetExposure> exposures;

  // Exposures of which a camera at least was added, each counted once.
  int64_t CountAdded() const;
};

// Knows frames by their headers and fibermaps; it keeps no spectra.
class CoaddIndex {
 public:
  // The frames of the cameras of one letter.
  struct Arm {
    char name = 0;        // see ArmOf
    WavelengthGrid grid;  // of its first frame
    FrameOrigin origin;   // likewise, without the fibermap
  };
  struct Row {
    int row = 0;        // of the frame
    size_t target = 0;  // in targets()
    bool good = false;  // its spectrum is the target's and counts
  };
  // The rows of a frame that are targets.
  struct FrameRows {
    size_t arm = 0;  // in arms()
    std::vector<Row> rows;
  };

  // InvalidArgument that names the frame (`name`), which then counts nothing: its resolution has not
  // kResolutionDiagonals diagonals, its fibermap lacks TARGETID or OBJTYPE, or a frame of the same exposure
  // and camera that has one of its fibres was added.
  absl::StatusOr<FrameRows> Add(const Frame& frame, const std::string& name);

  // The arm that the frame belongs to; null before its first frame.
  const Arm* FindArm(const Frame& frame) const;
  const std::vector<Arm>& arms() const { return arms_; }                // in the order of their first frames
  const std::vector<CoaddTarget>& targets() const { return targets_; }  // likewise

  // TARGETID, TARGET_RA, TARGET_DEC, OBJTYPE, COADD_FIBERSTATUS and COADD_NUMEXP of each target.
  absl::StatusOr<RawTable> Fibermap() const;
  // EXP_FIBERMAP: TARGETID, EXPID and, where all frames have them, NIGHT, FIBER and FIBERSTATUS; a row for
  // each exposure of a target by a fibre. Nullopt if a frame has no EXPID.
  absl::StatusOr<std::optional<RawTable>> ExposureTable() const;

 private:
  // The light of a frame. `text` is what two readings of the same light share: EXPID and CAMERA or, for
  // frames without EXPID, the checksum of their fluxes.
  struct Light {
    std::string text, frame;      // `frame` is its name
    std::vector<int64_t> fibres;  // sorted
  };
  // All frames of one EXPID; a frame without EXPID is an exposure of its own.
  struct Exposure {
    std::string text;                      // EXPID, or the text of the frame's light
    std::optional<int64_t> number, night;  // EXPID, NIGHT
  };

  absl::Status CheckNew(const Light& light) const;
  size_t NumberOf(const std::vector<std::string>& cards, const Light& light);
  void Join(const CoaddTarget& row, const TargetExposure& exposure, CoaddTarget* target) const;

  std::vector<Arm> arms_;
  std::vector<CoaddTarget> targets_;
  std::unordered_map<int64_t, size_t> position_;  // of each target
  std::vector<Exposure> exposures_;
  std::vector<Light> lights_;
  bool has_fibres_ = true, has_status_ = true;  // all fibermaps have FIBER, FIBERSTATUS
};

// An error that names a frame.
absl::Status InFrame(const std::string& name, const absl::Status& status);

}  // namespace spexd

#endif  // SPEXD_CORE_PRODUCTS_COADD_COADD_INDEX_H_
