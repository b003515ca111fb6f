// The arms and targets of a coadd, and the rows of its frames that belong to each target.
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

// An exposure of a target by one fibre, in all cameras.
struct TargetExposure {
  size_t exposure = 0;  // number among the coadd's exposures
  int64_t fibre = 0;
  int64_t status = 0;  // bits of FIBERSTATUS set in any of its frames
  bool added = false;  // whether the spectrum of at least one camera counts
};

// A target: the values of its first row in the fibermaps, and the status from all rows.
struct CoaddTarget {
  int64_t id = 0;
  int64_t status = 0;      // bits of FIBERSTATUS that all rows have, including rows that are left out
  std::string type;        // OBJTYPE
  double ra = 0, dec = 0;  // degrees
  std::vector<TargetExposure> exposures;

  // The number of exposures of which at least one camera was added. Each counts once.
  int64_t CountAdded() const;
};

// The index of frames by their headers and fibermaps. It keeps no spectra.
class CoaddIndex {
 public:
  // The frames of the cameras of one letter.
  struct Arm {
    char name = 0;        // B, R or Z (ArmOf)
    WavelengthGrid grid;  // that of the arm's first frame
    FrameOrigin origin;   // that of the arm's first frame, without the fibermap
  };
  struct Row {
    int row = 0;        // row of the frame
    size_t target = 0;  // position in targets()
    bool good = false;  // whether the spectrum is the target's and counts
  };
  // The rows of a frame that are targets.
  struct FrameRows {
    size_t arm = 0;  // position in arms()
    std::vector<Row> rows;
  };

  // Adds a frame. InvalidArgument, naming the frame (`name`), if its resolution does not have
  // kResolutionDiagonals diagonals, its fibermap lacks TARGETID or OBJTYPE, or a frame of the same exposure
  // and camera with one of its fibres was added before; nothing is then added.
  absl::StatusOr<FrameRows> Add(const Frame& frame, const std::string& name);

  // The arm to which the frame belongs; null before its first frame.
  const Arm* FindArm(const Frame& frame) const;
  const std::vector<Arm>& arms() const { return arms_; }                // in the order of their first frames
  const std::vector<CoaddTarget>& targets() const { return targets_; }  // in the order of their first rows

  // A table of the targets: TARGETID, TARGET_RA, TARGET_DEC, OBJTYPE, COADD_FIBERSTATUS and COADD_NUMEXP.
  absl::StatusOr<RawTable> Fibermap() const;
  // The table EXP_FIBERMAP, with a row for each exposure of a target by a fibre: TARGETID, EXPID and, if all
  // frames have them, NIGHT, FIBER and FIBERSTATUS. Nullopt if a frame has no EXPID.
  absl::StatusOr<std::optional<RawTable>> ExposureTable() const;

 private:
  // The light of a frame. `text` is equal for two readings of the same light: EXPID and CAMERA or, for frames
  // without EXPID, the checksum of their fluxes.
  struct Light {
    std::string text, frame;      // `frame`: name of the frame
    std::vector<int64_t> fibres;  // sorted
  };
  // All frames of one EXPID. A frame without EXPID is an exposure of its own.
  struct Exposure {
    std::string text;                      // EXPID, or the text of the frame's light
    std::optional<int64_t> number, night;  // EXPID, NIGHT
  };

  absl::Status CheckNew(const Light& light) const;
  size_t NumberOf(const std::vector<std::string>& cards, const Light& light);
  void Join(const CoaddTarget& row, const TargetExposure& exposure, CoaddTarget* target) const;

  std::vector<Arm> arms_;
  std::vector<CoaddTarget> targets_;
  std::unordered_map<int64_t, size_t> position_;  // position of each TARGETID in targets_
  std::vector<Exposure> exposures_;
  std::vector<Light> lights_;
  bool has_fibres_ = true, has_status_ = true;  // whether all fibermaps have FIBER and FIBERSTATUS
};

// An InvalidArgument that begins with the frame's name.
absl::Status InFrame(const std::string& name, const absl::Status& status);

}  // namespace spexd

#endif  // SPEXD_CORE_PRODUCTS_COADD_COADD_INDEX_H_
