// The intake of frames that appear in a folder: each is extracted with the PSF of its camera.
#ifndef SPEXD_CLIENT_CLI_NIGHT_CAMERA_INTAKE_H_
#define SPEXD_CLIENT_CLI_NIGHT_CAMERA_INTAKE_H_

#include <map>
#include <set>
#include <stop_token>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "client/cli/batch/frame_list.h"
#include "client/cli/flags/batch_products.h"
#include "client/cli/flags/job_flags.h"
#include "client/cli/night/folder_watch.h"

namespace spexd::cli {

class CameraIntake : public FrameIntake {
 public:
  // `psfs`: words CAMERA=FILE. InvalidArgument: a malformed word, a repeated camera, or a PSF whose header
  // has another camera. Other errors are those of reading the PSFs' headers.
  static absl::StatusOr<CameraIntake> Make(const JobFlags& flags, const std::vector<std::string>& psfs,
                                           const OutputFolders& folders, const BatchProducts& products);

  FrameTask Name(const std::string& path) const override;
  // Reads the whole file. The task is refused if its camera has no PSF.
  absl::StatusOr<FrameTask> Open(const std::string& path, const std::stop_token& stop) const override;
  std::vector<std::string> Psfs() const override;

  std::set<std::string> Cameras() const;

 private:
  CameraIntake() = default;

  JobFlags flags_;
  OutputFolders folders_;
  BatchProducts products_;
  std::map<std::string, std::string> psfs_;  // by camera
};

}  // namespace spexd::cli

#endif  // SPEXD_CLIENT_CLI_NIGHT_CAMERA_INTAKE_H_
