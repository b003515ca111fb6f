#include "server/jobs/preload.h"

#include <chrono>
#include <filesystem>
#include <system_error>
#include <utility>

#include "absl/strings/str_format.h"
#include "core/base/status_macros.h"
#include "core/base/threads/deadline.h"
#include "core/base/threads/guard.h"
#include "core/extract/request_checks.h"
#include "core/fits/readers.h"
#include "server/base/retry.h"
#include "server/jobs/warm_file.h"

namespace spexd {
namespace {

// The owner of preloaded items. No identity can have this name, so only administrators may unload them.
constexpr char kOwner[] = "(preloaded)";

// Returns a policy for a file of the operator, who may name any file, also a link: its folder is the only
// root.
absl::StatusOr<PathPolicy> PolicyFor(FileInput* file) {
  std::error_code error;
  const std::filesystem::path path = std::filesystem::canonical(file->name, error);
  if (error) return absl::NotFoundError(error.message());
  file->name = path;
  return PathPolicy::Make({path.parent_path()});
}

// Returns the status with the file's name. A file that cannot be opened is InvalidArgument, because it is a
// mistake of the operator.
absl::Status Named(const Preload& preload, const absl::Status& status) {
  const bool mistake = absl::IsNotFound(status) || absl::IsPermissionDenied(status);
  return absl::Status(mistake ? absl::StatusCode::kInvalidArgument : status.code(),
                      absl::StrFormat("--preload-psf \"%s\": %s", preload.path, status.message()));
}

absl::Status CheckFile(const Preload& preload, int64_t max_bytes) {
  FileInput file;
  file.name = preload.path;
  SPEXD_ASSIGN_OR_RETURN(const PathPolicy paths, PolicyFor(&file));
  SPEXD_RETURN_IF_ERROR(file.Measure(paths, max_bytes).status());
  SPEXD_ASSIGN_OR_RETURN(const Source source, file.Open(nullptr));
  SPEXD_ASSIGN_OR_RETURN(const Psf outline, ReadPsfOutline(source));
  if (!preload.grid.has_value()) return absl::OkStatus();
  return CheckPreparation(outline, *preload.grid, preload.bundle_size);
}

}  // namespace

absl::Status CheckPreload(const Preload& preload, int64_t max_bytes) {
  const absl::Status checked = CatchExceptions([&] { return CheckFile(preload, max_bytes); });
  return checked.ok() ? checked : Named(preload, checked);
}

Preloader::Preloader(const ServerParts& parts, std::vector<Preload> preloads, std::function<void()> done)
    : parts_(parts),
      preloads_(std::move(preloads)),
      done_(std::move(done)),
      thread_([this](const std::stop_token& stop) { Run(stop); }) {}

Preloader::~Preloader() = default;

void Preloader::Run(const std::stop_token& stop) {
  for (const Preload& preload : preloads_) {
    const absl::Status loaded = CatchExceptions([&] { return LoadWhenThereIsRoom(preload, stop); });
    if (stop.stop_requested()) return;
    MutexLock lock(&mutex_);
    if (!loaded.ok()) {
      status_ = Named(preload, loaded);
      parts_.log->Failure("preload_failed", status_);
      return;
    }
    ++loaded_;
  }
  done_();
}

absl::Status Preloader::LoadWhenThereIsRoom(const Preload& preload, const std::stop_token& stop) {
  const WakeOnStop wake(stop, &mutex_, &stopped_);
  for (;;) {
    const absl::Status loaded = Load(preload, stop);
    const auto delay = RetryDelayOf(loaded);
    if (!delay.has_value()) return loaded;
    const auto again = std::chrono::steady_clock::now() + *delay;
    MutexLock lock(&mutex_);
    while (!stop.stop_requested() && stopped_.WaitUntil(&mutex_, again)) {
    }
    if (stop.stop_requested()) return absl::CancelledError("the server stops");
  }
}

absl::Status Preloader::Load(const Preload& preload, const std::stop_token& stop) {
  FileInput file;
  file.name = preload.path;
  SPEXD_ASSIGN_OR_RETURN(const PathPolicy paths, PolicyFor(&file));
  ServerParts parts = parts_;
  parts.paths = &paths;
  const Identity owner{kOwner, Roles::All()};
  SPEXD_ASSIGN_OR_RETURN(WarmCache::Lease lease,
                         LoadWarmFile(parts, std::move(file), {&owner, parts_.options->pin_preloaded}, stop));
  if (preload.grid.has_value()) {
    SPEXD_RETURN_IF_ERROR(parts_.cache->Prepare(&lease, *preload.grid, preload.bundle_size, stop).status());
  }
  parts_.log->Info("psf_preloaded", {{"hash", lease.hash()}, {"path", preload.path}});
  return absl::OkStatus();
}

std::string Preloader::WhyNotReady() const {
  MutexLock lock(&mutex_);
  if (!status_.ok()) return std::string(status_.message());
  if (loaded_ == preloads_.size()) return "";
  return absl::StrFormat("loading PSFs: %d of %d are there", loaded_, preloads_.size());
}

absl::Status Preloader::status() const {
  MutexLock lock(&mutex_);
  return absl::Status(status_.code(), status_.message());
}

}  // namespace spexd
