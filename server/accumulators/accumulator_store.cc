#include "server/accumulators/accumulator_store.h"

#include <fcntl.h>
#include <sys/file.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdio>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "core/base/digest/sha256.h"
#include "core/base/status_macros.h"
#include "core/base/text.h"
#include "server/base/files.h"
#include "server/base/retry.h"

namespace spexd {
namespace {

constexpr char kSuffix[] = ".accumulator";
constexpr size_t kMostNameBytes = 64;

double Now() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

absl::Status CheckName(const std::string& name) {
  const auto allowed = [](char c) { return absl::ascii_isalnum(c) || c == '.' || c == '_' || c == '-'; };
  if (!name.empty() && name.size() <= kMostNameBytes && absl::ascii_isalnum(name[0]) &&
      std::all_of(name.begin(), name.end(), allowed)) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(
      absl::StrFormat("name is \"%s\", must be 1 to %d letters, digits, '.', '_' and '-', the first a letter "
                      "or digit",
                      ForMessage(name), kMostNameBytes));
}

absl::Status NoSuch(const std::string& name) {
  return absl::NotFoundError(absl::StrCat("there is no accumulator \"", ForMessage(name), "\""));
}

AccumulatorInfo InfoOf(const Accumulator& accumulator, int64_t bytes) {
  return {accumulator.spec(), accumulator.changed(), accumulator.frames(),
          accumulator.rows(), accumulator.grid(),    bytes};
}

}  // namespace

AccumulatorStore::AccumulatorStore(std::string folder, const Limits& limits, Logger* log)
    : jobs_folder_(std::move(folder)),
      folder_(jobs_folder_.empty() ? "" : jobs_folder_ + "/accumulators"),
      limits_(limits),
      log_(log) {}

// A name may be an identity's, with any characters.
std::string AccumulatorStore::PathOf(const Key& key) const {
  return absl::StrCat(folder_, "/",
                      Sha256Hex(absl::StrCat(key.first, absl::string_view("\0", 1), key.second)), kSuffix);
}

absl::Status AccumulatorStore::TakeFolder() {
  SPEXD_RETURN_IF_ERROR(MakeFolder(jobs_folder_));
  SPEXD_RETURN_IF_ERROR(MakeFolder(folder_));
  const std::string path = folder_ + "/lock";
  lock_ = FileDescriptor(open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (lock_.get() < 0) return DiskError(path, "cannot be made");
  if (flock(lock_.get(), LOCK_EX | LOCK_NB) == 0) return absl::OkStatus();
  if (errno == EWOULDBLOCK)
    return absl::UnavailableError(absl::StrCat(jobs_folder_, ": another spexd keeps its jobs here"));
  return DiskError(path, "cannot be locked");
}

absl::Status AccumulatorStore::CheckEnabled() const {
  if (enabled()) return absl::OkStatus();
  return absl::FailedPreconditionError(
      "this server keeps no accumulators: it was started without --jobs-dir or with --max-accumulators 0");
}

absl::Status AccumulatorStore::Open() {
  if (!enabled()) return absl::OkStatus();
  SPEXD_RETURN_IF_ERROR(TakeFolder());
  SPEXD_ASSIGN_OR_RETURN(const std::vector<std::string> names, ListFolder(folder_));
  for (const std::string& name : names) {
    const std::string path = absl::StrCat(folder_, "/", name);
    if (absl::EndsWith(name, ".tmp")) RemoveFile(path);  // that a killed server did not finish
    if (absl::EndsWith(name, kSuffix)) SPEXD_RETURN_IF_ERROR(TakeFile(path));
  }
  return absl::OkStatus();
}

absl::Status AccumulatorStore::TakeFile(const std::string& path) {
  absl::StatusOr<Accumulator> accumulator = Load(path);
  if (accumulator.ok()) {
    const Key key{accumulator->spec().owner, accumulator->spec().name};
    const FileDescriptor file(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW));
    if (path == PathOf(key)) {
      const int64_t bytes = lseek(file.get(), 0, SEEK_END);
      MutexLock lock(&mutex_);
      entries_[key] = std::make_shared<Entry>(InfoOf(*accumulator, bytes));
      return absl::OkStatus();
    }
    accumulator = absl::DataLossError(absl::StrCat(path, ": is the file of another accumulator"));
  }
  if (!absl::IsDataLoss(accumulator.status())) return accumulator.status();
  SetAside(path, accumulator.status());
  return absl::OkStatus();
}

void AccumulatorStore::SetAside(const std::string& path, const absl::Status& why) {
  const std::string aside = absl::StrFormat("%s.damaged-%.0f", path, Now());
  const bool moved = std::rename(path.c_str(), aside.c_str()) == 0;
  log_->Error("accumulator_damaged",
              {{"message", std::string(why.message())}, {"moved_to", moved ? aside : path}});
  MutexLock lock(&mutex_);
  ++counts_.damaged;
}

absl::StatusOr<Accumulator> AccumulatorStore::Load(const std::string& path) {
  const FileDescriptor file(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW));
  if (file.get() < 0) return DiskError(path, "cannot be opened");
  StateReader reader(&file, path);
  return Accumulator::Read(&reader);
}

absl::StatusOr<Accumulator> AccumulatorStore::LoadOrSetAside(const Key& key, Entry* entry) {
  absl::StatusOr<Accumulator> accumulator = Load(PathOf(key));
  if (!absl::IsDataLoss(accumulator.status())) return accumulator;
  SetAside(PathOf(key), accumulator.status());
  MutexLock lock(&mutex_);
  entry->gone = true;
  entries_.erase(key);
  return accumulator;
}

absl::StatusOr<int64_t> AccumulatorStore::Save(const Accumulator& accumulator) const {
  const std::string path = PathOf({accumulator.spec().owner, accumulator.spec().name});
  const std::string temporary = path + ".tmp";
  const auto write = [&]() -> absl::StatusOr<int64_t> {
    const FileDescriptor file(
        open(temporary.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600));
    if (file.get() < 0) return DiskError(temporary, "cannot be made");
    StateWriter writer(&file, temporary);
    accumulator.Write(&writer);
    SPEXD_ASSIGN_OR_RETURN(const int64_t bytes, writer.Finish());
    if (std::rename(temporary.c_str(), path.c_str()) != 0) return DiskError(path, "cannot be named");
    return bytes;
  };
  const absl::StatusOr<int64_t> bytes = write();
  if (!bytes.ok()) {
    RemoveFile(temporary);
    return bytes;
  }
  SPEXD_RETURN_IF_ERROR(SyncFolder(folder_));
  return bytes;
}

absl::StatusOr<AccumulatorInfo> AccumulatorStore::Create(AccumulatorSpec spec) {
  SPEXD_RETURN_IF_ERROR(CheckName(spec.name));
  const Key key{spec.owner, spec.name};
  spec.created = Now();
  const Accumulator empty(std::move(spec));
  MutexLock lock(&mutex_);  // over the write: two of one name would write one file
  if (entries_.count(key) > 0)
    return absl::AlreadyExistsError(absl::StrCat("there is an accumulator \"", key.second, "\" already"));
  const auto of_owner = std::count_if(entries_.begin(), entries_.end(),
                                      [&](const auto& entry) { return entry.first.first == key.first; });
  const auto too_many = [](const char* of, int64_t limit, const char* flag) {
    return Refuse(absl::ResourceExhaustedError(
                      absl::StrFormat("%s %d accumulators, the limit (%s); drop one", of, limit, flag)),
                  "accumulators");
  };
  if (static_cast<int64_t>(entries_.size()) >= limits_.count)
    return too_many("the server has", limits_.count, "--max-accumulators");
  if (of_owner >= limits_.count_of_owner)
    return too_many("the identity has", limits_.count_of_owner, "--max-accumulators-per-identity");
  SPEXD_ASSIGN_OR_RETURN(const int64_t bytes, Save(empty));
  return (entries_[key] = std::make_shared<Entry>(InfoOf(empty, bytes)))->info;
}

std::vector<AccumulatorInfo> AccumulatorStore::List(const std::string& owner) const {
  std::vector<AccumulatorInfo> infos;
  MutexLock lock(&mutex_);
  for (const auto& [key, entry] : entries_) {
    if (owner.empty() || key.first == owner) infos.push_back(entry->info);
  }
  return infos;
}

absl::StatusOr<std::shared_ptr<AccumulatorStore::Entry>> AccumulatorStore::Get(const Key& key) const {
  SPEXD_RETURN_IF_ERROR(CheckEnabled());
  MutexLock lock(&mutex_);
  const auto found = entries_.find(key);
  if (found == entries_.end()) return NoSuch(key.second);
  return found->second;
}

absl::StatusOr<AccumulatorInfo> AccumulatorStore::Find(const Identity& caller, const std::string& owner,
                                                       const std::string& name) const {
  const bool others = !owner.empty() && owner != caller.name;
  if (others && !caller.roles.administer) {
    return Conceal(NoSuch(name), absl::StrFormat("only an administrator may use accumulator \"%s\" of \"%s\"",
                                                 ForMessage(name), ForMessage(owner)));
  }
  SPEXD_ASSIGN_OR_RETURN(const std::shared_ptr<Entry> entry, Get({others ? owner : caller.name, name}));
  MutexLock lock(&mutex_);
  return entry->info;
}

int64_t AccumulatorStore::MemoryToAdd(const std::string& owner, const std::vector<std::string>& names,
                                      int64_t fibres, int64_t bins) const {
  int64_t most = 0;
  MutexLock lock(&mutex_);
  for (const std::string& name : names) {
    const auto found = entries_.find({owner, name});
    if (found == entries_.end()) continue;
    const bool pca = found->second->info.spec.kind == AccumulatorKind::kPca;
    const int64_t sums = pca ? PcaAccumulatorBytes(fibres, bins)
                             : limits_.bytes + SkySubtractedBytes(fibres, bins);  // others may add meanwhile
    most = std::max(most, std::min(sums, limits_.bytes + SkySubtractedBytes(fibres, bins)));
  }
  return most;
}

absl::Status AccumulatorStore::CheckDisk(const std::string& owner, int64_t bytes, int64_t before) const {
  int64_t all = bytes - before, of_owner = bytes - before;
  for (const auto& [key, entry] : entries_) {
    all += entry->info.bytes;
    if (key.first == owner) of_owner += entry->info.bytes;
  }
  const auto exceeds = [](const char* whose, int64_t sum, int64_t limit, const char* flag) {
    return absl::ResourceExhaustedError(absl::StrFormat(
        "%s accumulators would have %d bytes, the limit is %d (%s); drop one", whose, sum, limit, flag));
  };
  if (all > limits_.disk_bytes)
    return exceeds("the server's", all, limits_.disk_bytes, "--accumulators-disk-bytes");
  if (of_owner > limits_.disk_bytes_of_owner) {
    return exceeds("the identity's", of_owner, limits_.disk_bytes_of_owner,
                   "--accumulators-disk-bytes-per-identity");
  }
  return absl::OkStatus();
}

absl::StatusOr<bool> AccumulatorStore::AddInTurn(const Key& key, Entry* entry, const FrameToAdd& frame) {
  SPEXD_ASSIGN_OR_RETURN(Accumulator accumulator, LoadOrSetAside(key, entry));
  if (accumulator.Has(frame)) return true;
  SPEXD_ASSIGN_OR_RETURN(const int64_t most, accumulator.BytesWith(frame));
  if (most > limits_.bytes) {
    return absl::ResourceExhaustedError(
        absl::StrFormat("accumulator \"%s\" is full: with this frame it would have %d bytes, the limit is %d "
                        "(--max-accumulator-bytes)",
                        key.second, most, limits_.bytes));
  }
  int64_t before = 0;
  {
    MutexLock lock(&mutex_);
    before = entry->info.bytes;
    SPEXD_RETURN_IF_ERROR(CheckDisk(key.first, most, before));
    entry->info.bytes = std::max(before, most);  // until it is written
  }
  const auto add = [&]() -> absl::StatusOr<int64_t> {
    SPEXD_RETURN_IF_ERROR(accumulator.Add(frame, Now()));
    return Save(accumulator);
  };
  const absl::StatusOr<int64_t> bytes = add();
  MutexLock lock(&mutex_);
  if (bytes.ok()) {
    entry->info = InfoOf(accumulator, *bytes);
  } else {
    entry->info.bytes = before;
  }
  return bytes.ok() ? absl::StatusOr<bool>(false) : bytes.status();
}

absl::StatusOr<bool> AccumulatorStore::Add(const std::string& owner, const std::string& name,
                                           const FrameToAdd& frame, const std::stop_token& stop) {
  const Key key{owner, name};
  const auto add = [&]() -> absl::StatusOr<bool> {
    SPEXD_ASSIGN_OR_RETURN(const std::shared_ptr<Entry> entry, Get(key));
    SPEXD_ASSIGN_OR_RETURN(const ByteBudget::Reservation turn, entry->turn.WaitFor(1, stop));
    {
      MutexLock lock(&mutex_);
      if (entry->gone) return NoSuch(name);
    }
    return AddInTurn(key, entry.get(), frame);
  };
  const absl::StatusOr<bool> existed = add();
  MutexLock lock(&mutex_);
  ++(!existed.ok() ? counts_.refused : *existed ? counts_.existed : counts_.added);
  return existed;
}

absl::StatusOr<Accumulator> AccumulatorStore::Read(const AccumulatorSpec& spec) {
  const Key key{spec.owner, spec.name};
  SPEXD_ASSIGN_OR_RETURN(const std::shared_ptr<Entry> entry, Get(key));
  SPEXD_ASSIGN_OR_RETURN(const ByteBudget::Reservation turn, entry->turn.WaitFor(1, {}));
  {
    MutexLock lock(&mutex_);
    if (entry->gone) return NoSuch(spec.name);
  }
  return LoadOrSetAside(key, entry.get());
}

absl::Status AccumulatorStore::Drop(const AccumulatorSpec& spec) {
  const Key key{spec.owner, spec.name};
  SPEXD_ASSIGN_OR_RETURN(const std::shared_ptr<Entry> entry, Get(key));
  SPEXD_ASSIGN_OR_RETURN(const ByteBudget::Reservation turn, entry->turn.WaitFor(1, {}));
  MutexLock lock(&mutex_);
  if (entry->gone) return NoSuch(spec.name);
  RemoveFile(PathOf(key));
  SPEXD_RETURN_IF_ERROR(SyncFolder(folder_));
  entry->gone = true;
  entries_.erase(key);
  return absl::OkStatus();
}

AccumulatorStats AccumulatorStore::stats() const {
  MutexLock lock(&mutex_);
  AccumulatorStats stats = counts_;
  stats.count = static_cast<int64_t>(entries_.size());
  for (const auto& [key, entry] : entries_) stats.disk_bytes += entry->info.bytes;
  stats.disk_limit_bytes = enabled() ? limits_.disk_bytes : 0;
  return stats;
}

}  // namespace spexd
