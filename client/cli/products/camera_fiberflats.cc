#include "client/cli/products/camera_fiberflats.h"

#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "client/job.h"
#include "core/base/status_macros.h"
#include "core/base/text.h"
#include "core/fits/hdu/cards.h"
#include "core/fits/hdu/source.h"
#include "core/fits/readers.h"

namespace spexd::cli {

absl::StatusOr<CameraFiberflats> CameraFiberflats::Load(const std::vector<std::string>& paths) {
  CameraFiberflats all;
  for (const std::string& path : paths) {
    SPEXD_ASSIGN_OR_RETURN(const Source source, Source::FromFile(path));
    SPEXD_ASSIGN_OR_RETURN(Fiberflat fiberflat, ReadFiberflat(source));
    fiberflat.name = path;
    if (fiberflat.camera.empty() && paths.size() > 1) {
      return absl::InvalidArgumentError(absl::StrCat(
          path,
          ": HDU FIBERFLAT has no CAMERA, so that it is for all frames; give it alone, or a fiberflat of "
          "each camera"));
    }
    for (const Fiberflat& before : all.fiberflats_) {
      if (absl::EqualsIgnoreCase(before.camera, fiberflat.camera)) {
        return absl::InvalidArgumentError(absl::StrCat(path, ": is of camera ", ForMessage(fiberflat.camera),
                                                       " as ", before.name, " is; give one of them"));
      }
    }
    all.fiberflats_.push_back(std::move(fiberflat));
  }
  return all;
}

absl::StatusOr<const Fiberflat*> CameraFiberflats::Of(const std::vector<std::string>& image_cards) const {
  if (fiberflats_.empty()) return nullptr;
  const std::string camera = FindString(image_cards, "CAMERA").value_or("");
  for (const Fiberflat& fiberflat : fiberflats_) {
    if (fiberflat.camera.empty() || absl::EqualsIgnoreCase(fiberflat.camera, camera)) return &fiberflat;
  }
  return absl::InvalidArgumentError(absl::StrCat("is of camera ",
                                                 camera.empty() ? "unknown name" : ForMessage(camera),
                                                 ", of which no --fiberflat is; give one for each camera"));
}

absl::StatusOr<NamedFiberflats> NamedFiberflats::Load(const std::vector<std::string>& paths) {
  NamedFiberflats fiberflats;
  fiberflats.names_ = paths;
  const auto is_hash = [](const std::string& name) { return absl::StartsWith(name, client::kPsfHashPrefix); };
  if (paths.size() == 1 && is_hash(paths[0])) return fiberflats;
  for (const std::string& path : paths) {
    if (!is_hash(path)) continue;
    return absl::InvalidArgumentError(absl::StrCat(
        "--fiberflat ", path, ": its camera is not known here; give it alone, or the files of all cameras"));
  }
  SPEXD_ASSIGN_OR_RETURN(fiberflats.by_camera_, CameraFiberflats::Load(paths));
  return fiberflats;
}

absl::StatusOr<std::string> NamedFiberflats::ForImage(const std::string& path) const {
  if (names_.size() < 2) return names_.empty() ? std::string() : names_[0];
  SPEXD_ASSIGN_OR_RETURN(const Source source, Source::FromFile(path));
  SPEXD_ASSIGN_OR_RETURN(const PreprocHeader header, ReadPreprocHeader(source));
  const absl::StatusOr<const Fiberflat*> found = by_camera_.Of(header.image_cards);
  if (found.ok()) return (*found)->name;
  return absl::InvalidArgumentError(absl::StrCat(path, ": ", found.status().message()));
}

}  // namespace spexd::cli
