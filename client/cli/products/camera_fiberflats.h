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
  // Reads the files. Errors of Source and ReadFiberflat. InvalidArgument: two have the same camera, or one of
  // several states no camera.
  static absl::StatusOr<CameraFiberflats> Load(const std::vector<std::string>& paths);

  // Returns one of the fiberflats; null: there are none.
  const Fiberflat* any() const { return fiberflats_.empty() ? nullptr : &fiberflats_.front(); }
  // Returns the fiberflat of the frame's camera, or the only one if it states no camera; null: there are
  // none. InvalidArgument: there are only those of other cameras. The pointer is valid as long as this
  // object.
  absl::StatusOr<const Fiberflat*> Of(const Frame& frame) const { return Of(frame.origin.image_cards); }
  // Does the same for a frame whose header has these cards.
  absl::StatusOr<const Fiberflat*> Of(const std::vector<std::string>& image_cards) const;

 private:
  std::vector<Fiberflat> fiberflats_;
};

// The names of fiberflats for jobs on a server: paths, or client::kPsfHashPrefix and the hash of one that the
// server keeps warm.
class NamedFiberflats {
 public:
  // Reads the files if there are several. InvalidArgument: one of several is a hash, whose camera is not
  // known here. Other errors as in CameraFiberflats::Load.
  static absl::StatusOr<NamedFiberflats> Load(const std::vector<std::string>& paths);

  // Returns the fiberflat for a preprocessed image, whose header is read if there are several; "": none.
  // Errors of CameraFiberflats::Of and of reading the file.
  absl::StatusOr<std::string> ForImage(const std::string& path) const;

  const std::vector<std::string>& names() const { return names_; }
  // The fiberflats of files; empty if the only name is a hash.
  const CameraFiberflats& by_camera() const { return by_camera_; }

 private:
  std::vector<std::string> names_;
  CameraFiberflats by_camera_;
};

}  // namespace spexd::cli

#endif  // SPEXD_CLIENT_CLI_PRODUCTS_CAMERA_FIBERFLATS_H_
