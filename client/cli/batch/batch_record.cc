#include "client/cli/batch/batch_record.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <optional>
#include <system_error>
#include <utility>
#include <variant>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "client/cli/batch/batch_result.h"
#include "core/base/digest/sha256.h"
#include "core/base/file_descriptor.h"
#include "core/base/status_macros.h"
#include "core/base/threads/parallel.h"
#include "core/fits/hdu/output_file.h"
#include "core/frame/job_options.h"

namespace spexd::cli {
namespace {

using nlohmann::json;

constexpr int kHashThreads = 4;

std::string ParentOf(const std::string& path) { return std::filesystem::path(path).parent_path().string(); }
std::string NameOf(const NamedFiles& files) {
  return std::filesystem::path(files.front().second).filename().string();
}

json JsonOf(const WavelengthGrid& grid) { return {grid.first, grid.step, grid.count}; }
json JsonOf(TraceAxes axes) { return kTraceAxesNames[static_cast<int>(axes)]; }
json JsonOf(const TraceDegrees& degrees) { return {degrees.x[0], degrees.x[1], degrees.y[0], degrees.y[1]}; }
template <typename T>
json JsonOf(T number) {
  return number;
}
template <typename T>
json JsonOf(const std::optional<T>& value) {
  return value.has_value() ? JsonOf(*value) : json();
}

// Returns the settings on which spectra depend, by the names of their flags, without those that have no value
// or no effect.
json Settings(const JobSpec& spec) {
  json settings;
  for (const JobOption& option : kJobOptions) {
    json value = std::visit([&](auto member) { return JsonOf(spec.*member); }, option.value);
    if (option.for_server_only || value.is_null()) continue;
    if (spec.trace_shifts == TraceAxes::kOff && absl::StartsWith(option.name, "trace_")) continue;
    const bool by_flag = *option.flag != '\0' && !option.negated;
    const std::string name = by_flag ? absl::StrReplaceAll(option.flag + 2, {{"-", "_"}}) : option.name;
    settings[name] = std::move(value);
  }
  return settings;
}

// Whether each file exists, or is recorded as a product that could not be made. `read`: also checks the
// files' recorded checksums.
bool AreAsRecorded(const json& record, const NamedFiles& files, bool read) {
  const auto recorded = record.find("files");
  if (recorded == record.end() || !recorded->is_object()) return false;
  for (const auto& [what, path] : files) {
    const auto checksum = recorded->find(what);
    if (checksum == recorded->end()) {
      if (HasError(record, what)) continue;
      return false;
    }
    std::error_code missing;
    if (!read && std::filesystem::exists(path, missing)) continue;
    const absl::StatusOr<std::string> now = FileSha256(path);
    if (!now.ok() || *checksum != *now) return false;
  }
  return true;
}

}  // namespace

absl::StatusOr<std::string> FileSha256(const std::string& path) {
  // O_NONBLOCK, because opening a pipe would block.
  const FileDescriptor file(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  struct stat info;
  if (file.get() < 0 || fstat(file.get(), &info) != 0) {
    return absl::NotFoundError(absl::StrCat(path, ": ", std::strerror(errno)));
  }
  if (S_ISFIFO(info.st_mode))
    return absl::InvalidArgumentError(absl::StrCat(path, ": is a pipe, must be a file"));
  Sha256 hash;
  std::vector<char> piece(size_t{1} << 20);
  while (true) {
    const ssize_t count = read(file.get(), piece.data(), piece.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return absl::NotFoundError(absl::StrCat(path, ": ", std::strerror(errno)));
    if (count == 0) return hash.Hex();
    hash.Update({piece.data(), static_cast<size_t>(count)});
  }
}

absl::StatusOr<const BatchRecord::Folder*> BatchRecord::FolderOf(const std::string& path) {
  const std::string name = ParentOf(path);
  const MutexLock lock(&mutex_);
  const auto known = folders_.find(name);
  if (known != folders_.end()) return &known->second;
  SPEXD_ASSIGN_OR_RETURN(std::unique_ptr<RecordFile> file, RecordFile::Open(name));
  return &folders_.emplace(name, Folder{std::move(file), TemporaryFilesByTarget(name)}).first->second;
}

absl::Status BatchRecord::OpenBeside(const std::string& path) { return FolderOf(path).status(); }

absl::StatusOr<std::string> BatchRecord::SharedSha256(const std::string& path) {
  if (absl::StartsWith(path, client::kPsfHashPrefix)) return path;
  {
    const MutexLock lock(&mutex_);
    const auto known = shared_.find(path);
    if (known != shared_.end()) return known->second;
  }
  SPEXD_ASSIGN_OR_RETURN(const std::string hash, FileSha256(path));
  const MutexLock lock(&mutex_);
  return shared_.emplace(path, hash).first->second;
}

absl::StatusOr<std::string> BatchRecord::ImageSha256(const FrameTask& task) {
  const NamedFiles files = task.Files();
  SPEXD_ASSIGN_OR_RETURN(const Folder* const folder, FolderOf(files.front().second));
  SPEXD_ASSIGN_OR_RETURN(const std::optional<json> known, folder->file->Find(NameOf(files)));
  const std::string& image = task.job.image;
  struct stat info;
  if (known.has_value() && folder->file->IsOfOthers(NameOf(files)) &&
      known->value("image", json()) == image && stat(image.c_str(), &info) == 0 &&
      static_cast<double>(info.st_mtim.tv_sec) + 1 < NumberIn(*known, "written")) {
    const json hash = known->value(json::json_pointer("/made_of/image"), json());
    if (hash.is_string()) return hash.get<std::string>();
  }
  return FileSha256(image);
}

absl::StatusOr<BatchRecord::Claim> BatchRecord::Look(
    const NamedFiles& files, RecordFile* file,
    const std::function<absl::StatusOr<nlohmann::json>()>& describe) {
  Claim claim;
  SPEXD_ASSIGN_OR_RETURN(claim.made_of, describe());
  SPEXD_ASSIGN_OR_RETURN(std::optional<json> known, file->Find(NameOf(files)));
  if (!known.has_value()) return claim;
  const auto made_of = known->find("made_of");
  if (made_of == known->end() || *made_of != claim.made_of) return claim;
  if (!AreAsRecorded(*known, files, /*read=*/!file->IsOfOthers(NameOf(files)))) return claim;
  claim.state = State::kDone;
  claim.record = *std::move(known);
  return claim;
}

absl::StatusOr<BatchRecord::Claim> BatchRecord::Begin(
    const NamedFiles& files, const std::function<absl::StatusOr<nlohmann::json>()>& describe) {
  SPEXD_ASSIGN_OR_RETURN(const Folder* const folder, FolderOf(files.front().second));
  SPEXD_ASSIGN_OR_RETURN(const bool mine, folder->file->Claim(NameOf(files)));
  if (!mine) return Claim{State::kElsewhere, {}, {}};
  SPEXD_RETURN_IF_ERROR(RemoveLeftovers(files));
  absl::StatusOr<Claim> claim = Look(files, folder->file.get(), describe);
  if (!claim.ok() || claim->state != State::kToDo) folder->file->Release(NameOf(files));
  return claim;
}

absl::StatusOr<json> BatchRecord::Done(const NamedFiles& files, const json& made_of, const json& measured) {
  json record = {{"output", NameOf(files)}, {"made_of", made_of}};
  std::vector<std::string> checksums(files.size());
  SPEXD_RETURN_IF_ERROR(
      ParallelFor(static_cast<int64_t>(files.size()), kHashThreads, [&](int64_t k) -> absl::Status {
        const auto at = static_cast<size_t>(k);
        SPEXD_ASSIGN_OR_RETURN(checksums[at], FileSha256(files[at].second));
        return absl::OkStatus();
      }));
  for (size_t k = 0; k < files.size(); ++k) record["files"][files[k].first] = checksums[k];
  record.update(measured);
  SPEXD_ASSIGN_OR_RETURN(const Folder* const folder, FolderOf(files.front().second));
  SPEXD_RETURN_IF_ERROR(folder->file->Add(record));
  return record;
}

absl::Status BatchRecord::RemoveLeftovers(const NamedFiles& files) {
  for (const auto& [what, name] : files) {
    SPEXD_ASSIGN_OR_RETURN(const Folder* const folder, FolderOf(name));
    const std::filesystem::path path(name);
    const auto [begin, end] = folder->leftovers.equal_range((path.parent_path() / path.filename()).string());
    for (auto file = begin; file != end; ++file) {
      std::error_code gone;  // ignored: another process may have removed the file
      std::filesystem::remove(file->second, gone);
    }
  }
  return absl::OkStatus();
}

void BatchRecord::End(const NamedFiles& files) {
  const absl::StatusOr<const Folder*> folder = FolderOf(files.front().second);
  if (folder.ok()) (*folder)->file->Release(NameOf(files));
}

absl::StatusOr<json> DescribeTask(const FrameTask& task, const std::string& fiberflat,
                                  const ProductInputs& inputs, BatchRecord* record) {
  const client::Job& job = task.job;
  json made_of = {{"settings", Settings(job.spec)}};
  SPEXD_ASSIGN_OR_RETURN(made_of["image"], record->ImageSha256(task));
  const bool velocities = !task.products.velocities.empty();
  const std::pair<const char*, std::string> shared[] = {{"psf", job.psf},
                                                        {"fibermap", job.fibermap},
                                                        {"trace_reference", job.trace_reference},
                                                        {"fiberflat", task.products.any() ? fiberflat : ""},
                                                        {"templates", velocities ? inputs.templates : ""}};
  for (const auto& [what, path] : shared) {
    if (path.empty()) continue;
    SPEXD_ASSIGN_OR_RETURN(made_of[what], record->SharedSha256(path));
  }
  return made_of;
}

}  // namespace spexd::cli
