#include "tests/fuzz/support/journal_sample.h"

#include <algorithm>
#include <cstring>
#include <filesystem>

#include "absl/strings/str_cat.h"
#include "server/detached/store/journal/journal.h"
#include "server/detached/store/spool.h"
#include "tests/fuzz/support/fuzz_check.h"
#include "tests/support/temp_folder.h"

namespace spexd::fuzz {
namespace {

constexpr const char* kColumns[] = {
    "number",        "id",           "owner",           "request_id",   "image",
    "psf",           "header",       "digest",          "trace_id",     "keep_seconds",
    "submitted",     "state",        "priority",        "started",      "ended",
    "expires",       "runs",         "setbacks",        "bundles_done", "bundles_total",
    "last_sequence", "acknowledged", "input_bytes",     "result_bytes", "code",
    "message",       "deadline",     "header_checksum", "checksum"};
constexpr int kRows = 5;
constexpr double kSubmitted = 1.7e9, kLongAfter = 1e11;

JobRow SampleRow(int k) {
  JobRow row;
  row.id = std::string(kJobIdBytes, static_cast<char>('a' + k));
  row.owner = k % 2 == 0 ? "me" : "you";
  row.request_id = absl::StrCat("request ", k);
  row.image = "/frames/image.fits";
  row.psf = "/frames/psf.fits";
  row.header = "header";
  row.digest = std::string(64, '0');
  row.keep_seconds = 86400;
  row.submitted = kSubmitted + k;
  row.state = static_cast<v1::DetachedState>(v1::DETACHED_STATE_QUEUED + k);
  row.input_bytes = static_cast<int64_t>(row.header.size());
  if (row.state == v1::DETACHED_STATE_QUEUED) return row;
  row.started = row.submitted + 1;
  row.runs = 1;
  if (!row.has_ended()) return row;
  row.ended = row.started + 1;
  row.expires = kLongAfter;
  if (row.state == v1::DETACHED_STATE_DONE) return row;
  row.code = row.state == v1::DETACHED_STATE_CANCELLED ? 1 : 13;
  row.message = "it did not work";
  return row;
}

// The spool of a job that ended well, or of one that runs.
void AddSpool(const std::string& folder, JobRow* row) {
  absl::StatusOr<SpoolWriter> spool =
      SpoolWriter::Open(absl::StrCat(folder, "/", row->id, ".spool"), row->id, 0);
  v1::ExtractEvent info, bundle, summary;
  info.mutable_frame_info()->set_last(true);
  bundle.mutable_bundle()->set_last(true);
  summary.mutable_summary()->set_last(true);
  Require(spool.ok() && spool->Append({info}).ok() && spool->Append({bundle}).ok(),
          "a sample can be written");
  if (row->has_ended()) Require(spool->Append({summary}).ok(), "a sample can be written");
  Require(spool->Commit().ok(), "a sample can be written");
  row->last_sequence = spool->content().last_sequence;
  row->result_bytes = spool->content().bytes;
  row->bundles_done = row->bundles_total = 1;
}

}  // namespace

void WriteSampleStore(const std::string& folder) {
  const std::string jobs = folder + "/jobs";
  std::filesystem::create_directories(jobs);
  const auto journal = Journal::Open(folder + "/journal.db");
  Require(journal.ok(), "a sample can be written");
  for (int k = 0; k < kRows; ++k) {
    JobRow row = SampleRow(k);
    if (row.state == v1::DETACHED_STATE_QUEUED)
      testing::WriteBytes(absl::StrCat(jobs, "/", row.id, ".image"), "pixels");
    if (row.state == v1::DETACHED_STATE_RUNNING || row.state == v1::DETACHED_STATE_DONE) AddSpool(jobs, &row);
    Require((*journal)->Insert(row).ok(), "a sample can be written");
  }
}

std::vector<CellChange> ParseChanges(const std::string& bytes) {
  constexpr size_t kHead = 4;
  std::vector<CellChange> changes;
  for (size_t at = 0; at + kHead <= bytes.size();) {
    const auto head = [&](size_t k) { return static_cast<uint8_t>(bytes[at + k]); };
    const size_t length = std::min<size_t>(head(3), bytes.size() - at - kHead);
    changes.push_back(
        {head(0), head(1), static_cast<CellType>(head(2) % 4), bytes.substr(at + kHead, length)});
    at += kHead + length;
  }
  return changes;
}

std::string ChangeBytesOf(const CellChange& change) {
  std::string bytes;
  for (const size_t number : {static_cast<size_t>(change.row), static_cast<size_t>(change.column),
                              static_cast<size_t>(change.type), change.value.size()})
    bytes += static_cast<char>(number);
  return bytes + change.value;
}

void MakeVersion1(const std::string& journal) {
  absl::StatusOr<SqlDatabase> database = SqlDatabase::Open(journal);
  Require(database.ok() && database
                               ->Execute("DROP INDEX jobs_deadline; ALTER TABLE jobs DROP COLUMN deadline; "
                                         "ALTER TABLE jobs DROP COLUMN header_checksum; "
                                         "ALTER TABLE jobs DROP COLUMN checksum; PRAGMA user_version=1")
                               .ok(),
          "the sample can be made one of version 1");
}

void ChangeCells(const std::string& journal, const std::vector<CellChange>& changes) {
  absl::StatusOr<SqlDatabase> database = SqlDatabase::Open(journal);
  Require(database.ok(), "the sample can be opened");
  for (const CellChange& change : changes) {
    absl::StatusOr<SqlStatement> update = database->Prepare(absl::StrCat(
        "UPDATE jobs SET ", kColumns[change.column % std::size(kColumns)], " = ?1 WHERE number = ?2"));
    Require(update.ok(), "the sample has its columns");
    update->Bind(2, int64_t{change.row % kRows + 1});
    std::string number = change.value;
    number.resize(sizeof(int64_t), '\0');
    if (change.type == CellType::kInteger) {
      int64_t value = 0;
      std::memcpy(&value, number.data(), sizeof(value));
      update->Bind(1, value);
    } else if (change.type == CellType::kReal) {
      double value = 0;
      std::memcpy(&value, number.data(), sizeof(value));
      update->Bind(1, value);
    } else if (change.type == CellType::kText) {
      update->BindText(1, change.value);
    } else {
      update->BindBytes(1, change.value);
    }
    update->Run().IgnoreError();  // a number that is there already, say
  }
}

}  // namespace spexd::fuzz
