// The fiberflats of one command: one for all frames, or one for each camera.
#ifndef SPEXD_CLIENT_CLI_PRODUCTS_CAMERA_FIBERFLATS_H_
#define SPEXD_CLIENT_CLI_PRODUCTS_CAMERA_FIBERFLATS_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "core/model/frame.h"
#include "core/products/inputs/fiberflat.h"

namespace spexd::cli {

class CameraFiberflats {
 public:
  // The errors of Source and ReadFiberflat; InvalidArgument if two are of one camera, or if one of several
  // states none.
  static absl::StatusOr<CameraFiberflats> Load(const std::vector<std::string>& paths);

  // One of them; null if there are none.
  const Fiberflat* any() const { return fiberflats_.empty() ? nullptr : &fiberflats_.front(); }
  // The one of the frame's camera, or the only one, where it states no camera; null if there are none.
  // InvalidArgument if there are those of other cameras alone. Valid as long as this.
  absl::StatusOr<const Fiberflat*> Of(const Frame& frame) const { return Of(frame.origin.image_cards); }
  // The same for a frame whose header has these cards.
  absl::StatusOr<const Fiberflat*> Of(const std::vector<std::string>& image_cards) const;

 private:
  std::vector<Fiberflat> fiberflats_;
};

// The names of fiberflats as jobs on a server have them: paths, or client::kPsfHashPrefix and the hash of one
// that the server keeps warm.
class NamedFiberflats {
 public:
  // Reads them if there are several. InvalidArgument for a hash beside others, whose camera is not known
  // here; otherwise the errors of CameraFiberflats::Load.
  static absl::StatusOr<NamedFiberflats> Load(const std::vector<std::string>& paths);

  // The one for a preprocessed image, whose header is read if there are several; "": none. The errors of
  // CameraFiberflats::Of and of a file that cannot be read.
  absl::StatusOr<std::string> ForImage(const std::string& path) const;

  const std::vector<std::string>& names() const { return names_; }
  // Those of files; none if they are a single hash.
  const CameraFiberflats& by_camera() const { return by_camera_; }

 private:
  std::vector<std::string> names_;
  CameraFiberflats by_camera_;
};

}  // namespace spexd::cli

#endif  // SPEXD_CLIENT_CLI_PRODUCTS_CAMERA_FIBERFLATS_H_
