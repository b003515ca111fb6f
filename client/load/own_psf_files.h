// A separate PSF file for each job.
#ifndef SPEXD_CLIENT_LOAD_OWN_PSF_FILES_H_
#define SPEXD_CLIENT_LOAD_OWN_PSF_FILES_H_

#include <cstdint>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "core/model/psf.h"

namespace spexd::load {

// Copies of a PSF whose traces are shifted at random by up to a millionth of a pixel, so that no server has
// seen any of them before. They are in a folder of their own, which is removed on destruction.
class OwnPsfFiles {
 public:
  // Makes the folder in `parent` ("": the system's folder for temporary files). NotFound, PermissionDenied
  // and ResourceExhausted name it.
  static absl::StatusOr<std::unique_ptr<OwnPsfFiles>> Make(std::shared_ptr<const Psf> psf,
                                                           const std::string& parent);
  ~OwnPsfFiles();
  OwnPsfFiles(const OwnPsfFiles&) = delete;
  OwnPsfFiles& operator=(const OwnPsfFiles&) = delete;

  const std::string& folder() const { return folder_; }
  // Writes `count` files, which replace the previous ones, and returns their paths. Errors as in WritePsf.
  absl::StatusOr<std::vector<std::string>> Write(int count);

 private:
  OwnPsfFiles(std::shared_ptr<const Psf> psf, std::string folder)
      : psf_(std::move(psf)), folder_(std::move(folder)) {}

  const std::shared_ptr<const Psf> psf_;
  const std::string folder_;
  std::mt19937_64 random_{std::random_device{}()};
};

}  // namespace spexd::load

#endif  // SPEXD_CLIENT_LOAD_OWN_PSF_FILES_H_
