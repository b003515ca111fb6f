#include "client/cli/night/camera_intake.h"

#include <filesystem>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "client/job.h"
#include "core/base/status_macros.h"
#include "core/base/text.h"
#include "core/fits/hdu/cards.h"
#include "core/fits/hdu/source.h"
#include "core/fits/readers.h"
#include "core/frame/job.h"

namespace spexd::cli {
namespace {

absl::Status CheckPsfIsOf(const std::string& camera, const std::string& path) {
  if (absl::StartsWith(path, client::kPsfHashPrefix)) return absl::OkStatus();  // only a server has the PSF
  SPEXD_ASSIGN_OR_RETURN(const Source source, Source::FromFile(path));
  SPEXD_ASSIGN_OR_RETURN(const Psf psf, ReadPsfOutline(source));
  const std::string stated = CameraName(psf.camera);
  if (MayBeOneCamera(camera, stated)) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("--psf-for ", camera, ": ", path, " is of camera ",
                                                 ForMessage(stated), " (CAMERA in its header)"));
}

}  // namespace

absl::StatusOr<CameraIntake> CameraIntake::Make(const JobFlags& flags, const std::vector<std::string>& psfs,
                                                const OutputFolders& folders, const BatchProducts& products) {
  CameraIntake intake;
  intake.flags_ = flags;
  intake.folders_ = folders;
  intake.products_ = products;
  for (const std::string& word : psfs) {
    const size_t equals = word.find('=');
    const std::string camera = CameraName(word.substr(0, equals));
    if (equals == std::string::npos || camera.empty() || equals + 1 == word.size()) {
      return absl::InvalidArgumentError(absl::StrCat(
          "--psf-for: ", ForMessage(word), ", must be a camera and its PSF, such as r0=psf-r0.fits"));
    }
    const auto [at, is_new] = intake.psfs_.emplace(camera, word.substr(equals + 1));
    if (!is_new) {
      return absl::InvalidArgumentError(absl::StrCat("--psf-for: ", at->second, " and ",
                                                     word.substr(equals + 1), " are both of camera ",
                                                     ForMessage(camera), "; give one of them"));
    }
    SPEXD_RETURN_IF_ERROR(CheckPsfIsOf(camera, at->second));
  }
  // Errors of the flags would concern every frame, so they are reported at once.
  SPEXD_RETURN_IF_ERROR(MakeJob(flags, !folders.models.empty()).status());
  return intake;
}

FrameTask CameraIntake::Name(const std::string& path) const {
  FrameTask task;
  task.job.image = path;
  task.output.frame = (std::filesystem::path(folders_.frames) / OutputName("frame", path)).string();
  return task;
}

absl::StatusOr<FrameTask> CameraIntake::Open(const std::string& path, const std::stop_token& stop) const {
  SPEXD_ASSIGN_OR_RETURN(const Source source, Source::FromFile(path, {.stop = stop}));
  Workers workers;
  workers.stop = stop;
  SPEXD_ASSIGN_OR_RETURN(const PreprocHeader header, ReadPreprocHeader(source, workers));
  const std::string camera = CameraName(FindString(header.image_cards, "CAMERA").value_or(""));
  const auto psf = psfs_.find(camera);
  if (psf != psfs_.end()) return MakeTask(flags_, path, psf->second, folders_, products_);
  FrameTask task = Name(path);
  task.refused = absl::InvalidArgumentError(
      camera.empty() ? absl::StrCat(path, ": the header has no CAMERA, by which --psf-for names its PSF")
                     : absl::StrCat(path, ": is of camera ", ForMessage(camera),
                                    ", whose PSF is not given; add --psf-for ", camera, "=FILE"));
  return task;
}

std::vector<std::string> CameraIntake::Psfs() const {
  std::vector<std::string> psfs;
  for (const auto& [camera, psf] : psfs_) psfs.push_back(psf);
  return psfs;
}

std::set<std::string> CameraIntake::Cameras() const {
  std::set<std::string> cameras;
  for (const auto& [camera, psf] : psfs_) cameras.insert(camera);
  return cameras;
}

}  // namespace spexd::cli
