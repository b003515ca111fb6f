#include "client/cli/night/night_record.h"

#include <fcntl.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <optional>
#include <set>
#include <system_error>
#include <utility>
#include <variant>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "client/cli/terminal/trace_text.h"
#include "core/base/build_version.h"
#include "core/base/digest/sha256.h"
#include "core/base/file_descriptor.h"
#include "core/base/status_macros.h"
#include "core/fits/hdu/cards.h"
#include "core/fits/hdu/output_file.h"
#include "core/frame/job_options.h"

namespace spexd::cli {
namespace {

using nlohmann::json;

std::string FolderOf(const std::string& path) { return std::filesystem::path(path).parent_path().string(); }

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

// What the spectra depend on, by the names of the flags; only what has a value and an effect.
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

// Whether the file is there with the checksum that the record has under `key`.
bool IsAsRecorded(const json& record, const char* key, const std::string& path) {
  const auto recorded = record.find(key);
  if (recorded == record.end()) return false;
  const absl::StatusOr<std::string> now = FileSha256(path);
  return now.ok() && *recorded == *now;
}

json Measured(const JobOutcome& outcome) {
  const Frame& frame = outcome.frame;
  const FrameFit fit = FitOf(outcome);
  json measured = {
      {"camera", absl::AsciiStrToLower(FindString(frame.origin.image_cards, "CAMERA").value_or(""))},
      {"spectra", frame.fibres.count},
      {"bins", frame.spectra.flux.size()},
      {"masked_bins", outcome.summary.masked_bins},
      {"nodata_bins", outcome.summary.nodata_bins},
      {"chi2pix", fit.all.median},
      {"outliers_chi2pix", fit.all.outliers},
      {"largest_chi2pix", LargestMedianChi2pix(fit)},
      {"bad_fit", fit.bad},
      {"seconds", outcome.run_seconds},
      {"failed_bundles", outcome.summary.failed_bundles},
      {"warnings", outcome.summary.warnings},
      {"engine", outcome.engine},
      {"version", frame.origin.version}};
  if (frame.origin.traces.has_value()) measured["trace_shifts"] = TracesJson(*frame.origin.traces);
  return measured;
}

}  // namespace

absl::StatusOr<std::string> FileSha256(const std::string& path) {
  const FileDescriptor file(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (file.get() < 0) return absl::NotFoundError(absl::StrCat(path, ": ", std::strerror(errno)));
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

absl::StatusOr<std::unique_ptr<NightRecord>> NightRecord::Open(const std::vector<NightRow>& rows,
                                                               const std::vector<FrameTask>& tasks) {
  std::unique_ptr<NightRecord> record(new NightRecord(rows, tasks));
  std::set<std::string> folders;
  for (const FrameTask& task : tasks) {
    const std::string folder = FolderOf(task.output.frame);
    folders.insert(folder);
    if (!task.output.model.empty()) folders.insert(FolderOf(task.output.model));
    if (record->files_.contains(folder)) continue;
    SPEXD_ASSIGN_OR_RETURN(record->files_[folder], RecordFile::Open(folder));
  }
  for (const std::string& folder : folders) record->leftovers_.merge(TemporaryFilesByTarget(folder));
  return record;
}

RecordFile& NightRecord::FileOf(size_t task) const { return *files_.at(FolderOf(tasks_[task].output.frame)); }

std::string NightRecord::NameOf(size_t task) const {
  return std::filesystem::path(tasks_[task].output.frame).filename().string();
}

absl::StatusOr<std::string> NightRecord::SharedSha256(const std::string& path) {
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

absl::StatusOr<json> NightRecord::Describe(size_t task) {
  const client::Job& job = tasks_[task].job;
  json made_of = {{"settings", Settings(job.spec)}};
  SPEXD_ASSIGN_OR_RETURN(made_of["image"], FileSha256(job.image));
  SPEXD_ASSIGN_OR_RETURN(made_of["psf"], SharedSha256(job.psf));
  if (!job.fibermap.empty()) {
    SPEXD_ASSIGN_OR_RETURN(made_of["fibermap"], SharedSha256(job.fibermap));
  }
  if (!job.trace_reference.empty()) {
    SPEXD_ASSIGN_OR_RETURN(made_of["trace_reference"], SharedSha256(job.trace_reference));
  }
  return made_of;
}

absl::StatusOr<BatchRecord::State> NightRecord::Look(size_t task) {
  // Checksums are taken before the work: inputs that change during it are seen the next time.
  SPEXD_ASSIGN_OR_RETURN(made_of_[task], Describe(task));
  SPEXD_ASSIGN_OR_RETURN(std::optional<json> known, FileOf(task).Find(NameOf(task)));
  if (!known.has_value() || known->find("made_of") == known->end()) return State::kToDo;
  const FrameOutput& output = tasks_[task].output;
  if ((*known)["made_of"] != made_of_[task] || !IsAsRecorded(*known, "sha256", output.frame))
    return State::kToDo;
  if (!output.model.empty() && !IsAsRecorded(*known, "model_sha256", output.model)) return State::kToDo;
  results_[task] = {NightResult::State::kSkipped, *std::move(known), ""};
  return State::kDone;
}

absl::StatusOr<BatchRecord::State> NightRecord::Begin(size_t task) {
  SPEXD_ASSIGN_OR_RETURN(const bool mine, FileOf(task).Claim(NameOf(task)));
  if (!mine) return State::kElsewhere;
  RemoveLeftovers(task);
  absl::StatusOr<State> state = Look(task);
  if (!state.ok() || *state != State::kToDo) End(task);
  return state;
}

absl::Status NightRecord::Done(size_t task, const JobOutcome& outcome) {
  const FrameOutput& output = tasks_[task].output;
  json record = {{"output", NameOf(task)},
                 {"expid", rows_[task].expid},
                 {"image", tasks_[task].job.image},
                 {"made_of", made_of_[task]}};
  record.update(Measured(outcome));
  SPEXD_ASSIGN_OR_RETURN(record["sha256"], FileSha256(output.frame));
  if (!output.model.empty()) {
    SPEXD_ASSIGN_OR_RETURN(record["model_sha256"], FileSha256(output.model));
  }
  SPEXD_RETURN_IF_ERROR(FileOf(task).Add(record));
  results_[task] = {NightResult::State::kWritten, std::move(record), ""};
  return absl::OkStatus();
}

void NightRecord::Failed(size_t task, const absl::Status& status) {
  results_[task] = {NightResult::State::kFailed, {}, std::string(status.message())};
}

void NightRecord::RemoveLeftovers(size_t task) const {
  for (const std::filesystem::path path : {tasks_[task].output.frame, tasks_[task].output.model}) {
    const auto [begin, end] = leftovers_.equal_range((path.parent_path() / path.filename()).string());
    for (auto file = begin; file != end; ++file) {
      std::error_code gone;  // another process may have removed it
      std::filesystem::remove(file->second, gone);
    }
  }
}

void NightRecord::End(size_t task) { FileOf(task).Release(NameOf(task)); }

}  // namespace spexd::cli
