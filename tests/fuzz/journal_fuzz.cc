// The journal of detached jobs, damaged: any file in its place, or a good one, of this version or of one
// without checksums, in which cells have other values. A server starts with it, and uses each job that it
// finds there.
#include <algorithm>
#include <array>
#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "server/detached/store/job_store.h"
#include "tests/fuzz/support/fuzz_check.h"
#include "tests/fuzz/support/journal_sample.h"
#include "tests/support/temp_folder.h"

namespace spexd::fuzz {
namespace {

constexpr int kMostRows = 1000;
constexpr int64_t kDisk = int64_t{1} << 40;

class NoSink : public LogSink {
 public:
  void Write(const std::string&, const std::stop_token&) override {}
};

// What GetJob and ListJobs tell of the row can be read by who asked.
void RequireTellable(const JobRow& row) {
  v1::JobRecord record, read;
  record.set_request_id(row.request_id);
  record.set_owner(row.owner);
  record.set_image(row.image);
  record.set_psf(row.psf);
  record.set_message(row.message);
  record.set_job_id(row.id);
  Require(read.ParseFromString(record.SerializeAsString()), "texts of a row are UTF-8");
}

void RequireGoodRow(const JobRow& row) {
  RequireTellable(row);
  Require(row.state >= v1::DETACHED_STATE_QUEUED && row.state <= v1::DetachedState_MAX, "a row has a state");
  Require(row.acknowledged <= row.last_sequence, "no more events are acknowledged than there are");
  Require(row.input_bytes >= 0 && row.result_bytes >= 0, "a row has no less than 0 bytes");
  Require(row.has_ended() || (row.code == 0 && row.expires == 0), "a row that has not ended has no result");
}

std::vector<JobRow> RowsOf(JobStore* store) {
  const absl::StatusOr<std::vector<JobRow>> rows = store->List(Journal::Filter(), kMostRows);
  Require(rows.ok(), "a journal that was opened can be read");
  for (const JobRow& row : *rows) RequireGoodRow(row);
  return *rows;
}

void RequireSums(const JobStore& store, const std::vector<JobRow>& rows) {
  const StoreStats stats = store.stats();
  std::array<int64_t, v1::DetachedState_ARRAYSIZE> states = {};
  int64_t bytes = 0;
  for (const JobRow& row : rows) {
    ++states[row.state];
    bytes += kRowBytes + row.input_bytes + row.result_bytes;
  }
  Require(states == stats.jobs, "jobs are counted by state");
  Require(bytes == stats.disk_bytes, "bytes are counted");
}

// Whatever a caller can do with a job. Results may be damaged or gone.
void Use(JobStore* store, const JobRow& row) {
  const Identity root{"root", Roles::All()};
  const absl::StatusOr<JobRow> found = store->Get(root, row.id);
  Require(found.ok() && found->number == row.number,
          absl::StrCat("a job that is listed is found: ", found.status().ToString()));
  absl::StatusOr<JobStore::Watched> watched = store->Watch(root, row.id, row.acknowledged);
  Require(watched.ok(), "a job can be watched");
  absl::Status read;
  while (read.ok() && watched->reader.next() <= row.last_sequence) read = watched->reader.Read().status();
  RequireGoodError(read, {.also = {absl::StatusCode::kNotFound, absl::StatusCode::kUnavailable}});
  bool cancelled = false;
  const absl::StatusOr<JobRow> ended = store->Cancel(root, row.id, &cancelled);
  Require(ended.ok() && ended->has_ended() && cancelled != row.has_ended(), "a job can be stopped");
  store->Leave(row.id);
  Require(store->Acknowledge(root, row.id, row.last_sequence).ok(), "a job can be acknowledged");
}

// Those that the next start may not remove for their age: a damaged row may keep its job for no time at all.
size_t LastingJobs(const std::vector<JobRow>& rows) {
  constexpr double kMinute = 60;
  return static_cast<size_t>(std::count_if(rows.begin(), rows.end(), [](const JobRow& row) {
    return !row.has_ended() || row.expires > row.ended + kMinute;
  }));
}

absl::StatusOr<std::unique_ptr<JobStore>> Open(const std::string& folder) {
  static Logger log(LogLevel::kError, std::make_unique<NoSink>());
  return JobStore::Open({folder, {kDisk, kDisk}}, &log);
}

void UseAsJournal(const std::string& folder) {
  std::vector<JobRow> left;
  {
    const absl::StatusOr<std::unique_ptr<JobStore>> store = Open(folder);
    RequireGoodError(store.status(), {.also = {absl::StatusCode::kFailedPrecondition}});
    Require(store.ok() || absl::StrContains(store.status().message(), "version"),
            "a server starts whatever its journal is, unless a newer one wrote it");
    if (!store.ok()) return;
    const std::vector<JobRow> rows = RowsOf(store->get());
    Require((*store)->stats().damaged_jobs == 0 || (*store)->stats().damaged_journals == 1,
            "jobs are lost with a damaged journal alone");
    RequireSums(**store, rows);
    for (const JobRow& row : rows) Use(store->get(), row);
    left = RowsOf(store->get());
    RequireSums(**store, left);
  }
  const absl::StatusOr<std::unique_ptr<JobStore>> again = Open(folder);
  Require(again.ok() && (*again)->stats().damaged_journals == 0, "what was written is good");
  const std::vector<JobRow> found = RowsOf(again->get());
  Require(found.size() <= left.size() && found.size() >= LastingJobs(left), "jobs are there after a restart");
  RequireSums(**again, found);
}

// The sample's files, made once.
std::map<std::string, std::string> SampleFiles() {
  const testing::TempFolder folder;
  WriteSampleStore(folder.path());
  std::map<std::string, std::string> files;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder.path())) {
    const std::string path = entry.path();
    if (entry.is_regular_file()) files[path.substr(folder.path().size())] = testing::ReadBytes(path);
  }
  return files;
}

void Fuzz(const std::string& input) {
  static const std::map<std::string, std::string> sample = SampleFiles();
  const testing::TempFolder folder;
  const std::string jobs = folder / "jobs", other = folder / "other";
  for (const char* kind : {".image", ".psf", ".spool"}) testing::WriteBytes(other + kind, "not a job's");
  std::filesystem::create_directories(jobs + "/jobs");
  for (const auto& [name, bytes] : sample) testing::WriteBytes(jobs + name, bytes);
  if (absl::StartsWith(input, kSqliteMagic)) {
    testing::WriteBytes(jobs + "/journal.db", input);
  } else {
    ChangeCells(jobs + "/journal.db", ParseChanges(input));
    // Without checksums, the values alone tell of damage.
    if (input.size() % 2 == 1) MakeVersion1(jobs + "/journal.db");
  }
  UseAsJournal(jobs);
  for (const char* kind : {".image", ".psf", ".spool"})
    Require(std::filesystem::exists(other + kind), "files outside of the folder stay");
}

}  // namespace
}  // namespace spexd::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  spexd::fuzz::Fuzz(std::string(reinterpret_cast<const char*>(data), size));
  return 0;
}
