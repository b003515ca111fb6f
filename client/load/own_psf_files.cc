#include "client/load/own_psf_files.h"

#include <stdlib.h>
#include <sys/stat.h>

#include <cerrno>
#include <filesystem>
#include <system_error>

#include "absl/strings/str_cat.h"
#include "core/base/status_macros.h"
#include "core/fits/writers.h"

namespace spexd::load {
namespace {

constexpr double kMaxShift = 1e-6;  // pixels

}  // namespace

absl::StatusOr<std::unique_ptr<OwnPsfFiles>> OwnPsfFiles::Make(std::shared_ptr<const Psf> psf,
                                                               const std::string& parent) {
  std::error_code error;
  const std::filesystem::path base =
      parent.empty() ? std::filesystem::temp_directory_path(error) : std::filesystem::path(parent);
  std::string folder;
  if (!error) folder = std::filesystem::absolute(base / "spex-load-XXXXXX", error).string();
  if (error || mkdtemp(folder.data()) == nullptr) {
    return absl::ErrnoToStatus(error ? error.value() : errno,
                               absl::StrCat("cannot make a folder for PSFs in ", base.string()));
  }
  // All users may read the folder, because the server may run as another user.
  chmod(folder.c_str(), 0755);
  return std::unique_ptr<OwnPsfFiles>(new OwnPsfFiles(std::move(psf), std::move(folder)));
}

OwnPsfFiles::~OwnPsfFiles() {
  std::error_code ignored;
  std::filesystem::remove_all(folder_, ignored);
}

absl::StatusOr<std::vector<std::string>> OwnPsfFiles::Write(int count) {
  std::error_code ignored;
  for (const auto& entry : std::filesystem::directory_iterator(folder_, ignored)) {
    std::filesystem::remove(entry.path(), ignored);
  }
  std::uniform_real_distribution<double> shift(0, kMaxShift);
  std::vector<std::string> paths;
  for (int k = 0; k < count; ++k) {
    Psf copy = *psf_;
    for (int fibre = 0; fibre < copy.fibres; ++fibre) copy.traces.x.coeff(fibre, 0) += shift(random_);
    paths.push_back(absl::StrCat(folder_, "/psf-", k, ".fits"));
    SPEXD_RETURN_IF_ERROR(WritePsf(copy, paths.back()));
  }
  return paths;
}

}  // namespace spexd::load
