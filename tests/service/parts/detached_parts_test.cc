// The parts of detached jobs alone: journal, spool, order, disk space, and what they do with damage.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <iostream>
#include <map>
#include <random>
#include <set>
#include <sstream>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "server/base/files.h"
#include "server/base/retry.h"
#include "server/detached/store/disk_space.h"
#include "server/detached/store/job_store.h"
#include "server/detached/store/journal/disk_reserve.h"
#include "server/detached/store/journal/journal.h"
#include "server/detached/store/journal/journal_rescue.h"
#include "server/detached/store/spool.h"
#include "server/detached/turn_line.h"
#include "tests/support/temp_folder.h"

namespace {

// The inode of what was synced last.
std::atomic<ino_t> last_synced = 0;

}  // namespace

// Replaces fsync of the whole program, which notes what it is called for.
extern "C" int fsync(int file) {
  struct stat status;
  if (fstat(file, &status) == 0) last_synced = status.st_ino;
  return static_cast<int>(syscall(SYS_fsync, file));
}

namespace spexd {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::ReadBytes;
using ::testing::SizeIs;
using testing::TempFolder;
using testing::WriteBytes;

using Unit = std::vector<v1::ExtractEvent>;

const std::string kId(kJobIdBytes, 'a');

v1::ExtractEvent FrameInfoPiece(int count, bool last, const std::string& version = "1") {
  v1::ExtractEvent event;
  event.mutable_frame_info()->set_fibre_count(static_cast<uint32_t>(count));
  event.mutable_frame_info()->set_version(version);
  event.mutable_frame_info()->set_last(last);
  return event;
}

v1::ExtractEvent BundlePiece(int bundle, bool last) {
  v1::ExtractEvent event;
  event.mutable_bundle()->set_bundle(static_cast<uint32_t>(bundle));
  event.mutable_bundle()->set_flux(std::string(10, static_cast<char>('0' + bundle)));
  event.mutable_bundle()->set_last(last);
  return event;
}

v1::ExtractEvent ModelPiece(int bundle) {
  v1::ExtractEvent event;
  event.mutable_model()->set_bundle(static_cast<uint32_t>(bundle));
  return event;
}

v1::ExtractEvent SummaryPiece(bool last) {
  v1::ExtractEvent event;
  event.mutable_summary()->set_last(last);
  return event;
}

class SpoolTest : public ::testing::Test {
 protected:
  absl::StatusOr<SpoolWriter> Open(uint64_t shown = 0) { return SpoolWriter::Open(path_, kId, shown); }
  // A spool of five events in three units: the frame's information, two bundles.
  void Write() {
    auto spool = Open();
    ASSERT_TRUE(spool.ok()) << spool.status();
    for (const Unit& unit :
         {Unit{FrameInfoPiece(5, true)}, Unit{ModelPiece(1), BundlePiece(1, false), BundlePiece(1, true)},
          Unit{BundlePiece(0, true)}}) {
      ASSERT_TRUE(spool->Append(unit).ok());
      ends_.push_back(spool->bytes());
    }
    ASSERT_TRUE(spool->Commit().ok());
  }
  // The events that can be read up to `last`, and how reading ended.
  std::pair<std::vector<std::string>, absl::Status> ReadAll(uint64_t last, uint64_t after = 0) const {
    SpoolReader reader(path_, kId, after);
    std::vector<std::string> events;
    while (reader.next() <= last) {
      const auto event = reader.Read();
      if (!event.ok()) return {events, event.status()};
      events.push_back(event->SerializeAsString());
    }
    return {events, absl::OkStatus()};
  }

  TempFolder folder_;
  const std::string path_ = folder_ / "spool";
  std::vector<int64_t> ends_;  // of the units
};

TEST_F(SpoolTest, GivesBackWhatWasAppendedFromAnyEventOn) {
  Write();
  const auto all = ReadAll(5);
  ASSERT_TRUE(all.second.ok()) << all.second;
  EXPECT_THAT(all.first,
              ElementsAre(FrameInfoPiece(5, true).SerializeAsString(), ModelPiece(1).SerializeAsString(),
                          BundlePiece(1, false).SerializeAsString(), BundlePiece(1, true).SerializeAsString(),
                          BundlePiece(0, true).SerializeAsString()));
  EXPECT_THAT(ReadAll(5, 4).first, ElementsAre(BundlePiece(0, true).SerializeAsString()));
  EXPECT_THAT(ReadAll(5, 5).first, IsEmpty());
}

TEST_F(SpoolTest, IsCutBehindItsLastWholeUnitAndGoesOnThere) {
  Write();
  {
    auto spool = Open(5);
    ASSERT_TRUE(spool.ok()) << spool.status();
    ASSERT_TRUE(spool->Append({BundlePiece(2, false)}).ok());  // and then the server dies
  }
  auto spool = Open(5);
  ASSERT_TRUE(spool.ok()) << spool.status();
  EXPECT_EQ(spool->content().last_sequence, 5u);
  EXPECT_THAT(spool->content().bundles, ElementsAre(0u, 1u));
  EXPECT_EQ(spool->content().frame_info, FrameInfoDigest({FrameInfoPiece(5, true, "2")}));
  EXPECT_NE(spool->content().frame_info, FrameInfoDigest({FrameInfoPiece(6, true)}));
  EXPECT_FALSE(spool->content().has_summary);
  EXPECT_EQ(static_cast<int64_t>(ReadBytes(path_).size()), ends_.back());
  ASSERT_TRUE(spool->Append({SummaryPiece(false), SummaryPiece(true)}).ok());
  ASSERT_TRUE(spool->Commit().ok());
  EXPECT_TRUE(spool->content().has_summary);
  EXPECT_THAT(ReadAll(7).first, SizeIs(7));
}

// Whatever byte of a spool is damaged: what is served is what was written, or there is an error that names
// the file; and a run that goes on keeps what was shown, or says that it cannot.
TEST_F(SpoolTest, ServesNothingWrongWhateverByteIsDamaged) {
  Write();
  const std::string good = ReadBytes(path_);
  const std::vector<std::string> events = ReadAll(5).first;
  for (size_t at = 0; at < good.size(); ++at) {
    std::string bad = good;
    bad[at] = static_cast<char>(bad[at] ^ 0x10);
    WriteBytes(path_, bad);
    const auto [read, status] = ReadAll(5);
    ASSERT_FALSE(status.ok()) << "byte " << at;
    EXPECT_THAT(status.message(), HasSubstr(path_)) << "byte " << at;
    EXPECT_TRUE(std::equal(read.begin(), read.end(), events.begin())) << "byte " << at;
    const auto shown = Open(5);
    EXPECT_FALSE(shown.ok()) << "byte " << at;
    EXPECT_EQ(ReadBytes(path_), bad) << "what cannot be mended stays, byte " << at;
    const auto unseen = Open(0);
    // The version's own bytes may also name another version.
    if (absl::IsFailedPrecondition(unseen.status())) continue;
    ASSERT_TRUE(unseen.ok()) << unseen.status() << ", byte " << at;
    const uint64_t last = unseen->content().last_sequence;
    EXPECT_LT(last, 5u);
    const auto left = ReadAll(last);
    EXPECT_TRUE(left.second.ok()) << left.second;
    EXPECT_TRUE(std::equal(left.first.begin(), left.first.end(), events.begin())) << "byte " << at;
  }
}

TEST_F(SpoolTest, ServesNothingWrongWhereverItIsCutOff) {
  Write();
  const std::string good = ReadBytes(path_);
  const std::vector<std::string> events = ReadAll(5).first;
  for (size_t size = 0; size < good.size(); ++size) {
    WriteBytes(path_, good.substr(0, size));
    EXPECT_TRUE(absl::IsDataLoss(Open(5).status())) << size;
    const auto [read, status] = ReadAll(5);
    EXPECT_TRUE(absl::IsDataLoss(status)) << status << " at " << size;
    EXPECT_TRUE(std::equal(read.begin(), read.end(), events.begin())) << size;
    const auto unseen = Open(0);
    ASSERT_TRUE(unseen.ok()) << unseen.status() << " at " << size;
    const int64_t whole = std::count_if(ends_.begin(), ends_.end(),
                                        [&](int64_t end) { return end <= static_cast<int64_t>(size); });
    EXPECT_EQ(unseen->content().bytes,
              whole == 0 ? kSpoolHeaderBytes : ends_[static_cast<size_t>(whole - 1)]);
  }
}

// Found by fuzzing. A checksum is right wherever the sender of an event was wrong.
TEST_F(SpoolTest, TellsOfAnEventThatStatesMoreBytesThanItHas) {
  std::string file = SpoolHeader(kId);
  AppendRecord(1, absl::HexStringToBytes("22fcffffff043a003a0092ff2880808004"), &file);
  WriteBytes(path_, file);
  const auto [events, end] = ReadAll(1);
  EXPECT_THAT(events, IsEmpty());
  EXPECT_TRUE(absl::IsDataLoss(end)) << end;
  EXPECT_THAT(end.message(), HasSubstr("record 1 is no event"));
}

TEST_F(SpoolTest, OfAnotherJobIsRefused) {
  Write();
  SpoolReader reader(path_, std::string(kJobIdBytes, 'b'), 0);
  EXPECT_THAT(reader.Read().status().message(), HasSubstr("another job's"));
  std::filesystem::remove(path_);
  EXPECT_TRUE(absl::IsNotFound(SpoolReader(path_, kId, 0).NextBytes().status()));
}

TEST_F(SpoolTest, OnAFullDiskNamesItsFileAndKeepsWhatItHas) {
  Write();
  const auto before = signal(SIGXFSZ, SIG_IGN);
  rlimit limit{};
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &limit), 0);
  const rlimit little = {static_cast<rlim_t>(ends_.back() + 30), limit.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &little), 0);
  auto spool = Open(5);
  const absl::Status full = spool.ok() ? spool->Append({BundlePiece(2, true)}) : spool.status();
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &limit), 0);
  signal(SIGXFSZ, before);
  EXPECT_TRUE(absl::IsUnavailable(full)) << full;
  EXPECT_THAT(full.message(), HasSubstr(path_));
  EXPECT_THAT(ReadAll(5).first, SizeIs(5));
  const auto again = Open(5);
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ(again->content().bytes, ends_.back());
}

TEST(DiskReserve, TakesWhatThereIsAndGivesItUpInParts) {
  const TempFolder folder;
  const std::string path = folder / "reserve";
  const auto before = signal(SIGXFSZ, SIG_IGN);
  rlimit limit{};
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &limit), 0);
  const rlimit little = {static_cast<rlim_t>(DiskReserve::kBytes / 2), limit.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &little), 0);
  DiskReserve reserve(path);
  const absl::Status full = reserve.Fill();
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &limit), 0);
  signal(SIGXFSZ, before);
  EXPECT_TRUE(absl::IsUnavailable(full)) << full;
  EXPECT_THAT(full.message(), HasSubstr(path));
  EXPECT_FALSE(reserve.whole());
  EXPECT_EQ(std::filesystem::file_size(path), DiskReserve::kBytes / 2);
  EXPECT_TRUE(reserve.GiveUpPart());
  EXPECT_LT(std::filesystem::file_size(path), DiskReserve::kBytes / 2);
  DiskReserve next(path);  // of the next server
  EXPECT_FALSE(next.whole());
  while (next.GiveUpPart()) EXPECT_LT(std::filesystem::file_size(path), DiskReserve::kBytes / 2);
  EXPECT_EQ(std::filesystem::file_size(path), 0u);
  EXPECT_TRUE(next.Fill().ok());
  EXPECT_TRUE(next.whole());
  EXPECT_TRUE(DiskReserve(path).whole());
}

JobRow Row(const std::string& id, const std::string& owner, const std::string& request_id) {
  JobRow row;
  row.id = id;
  row.owner = owner;
  row.request_id = request_id;
  row.image = "image of " + id;
  row.header = std::string("header\0of", 9) + id;
  row.digest = "digest";
  row.keep_seconds = 60;
  row.submitted = 1000;
  row.input_bytes = 10;
  return row;
}

class JournalTest : public ::testing::Test {
 protected:
  std::unique_ptr<Journal> Open() {
    auto journal = Journal::Open(path_);
    EXPECT_TRUE(journal.ok()) << journal.status();
    return journal.ok() ? *std::move(journal) : nullptr;
  }
  static std::vector<std::string> Ids(const absl::StatusOr<std::vector<JobRow>>& rows) {
    std::vector<std::string> ids;
    for (const JobRow& row : *rows) ids.push_back(row.id);
    return ids;
  }

  TempFolder folder_;
  const std::string path_ = folder_ / "journal.db";
};

TEST_F(JournalTest, KeepsRowsAndTheirChangesOverARestart) {
  {
    const auto journal = Open();
    ASSERT_TRUE(journal->Insert(Row("a", "me", "one")).ok());
    EXPECT_TRUE(absl::IsAlreadyExists(journal->Insert(Row("b", "me", "one"))));
    ASSERT_TRUE(journal->Insert(Row("c", "you", "one")).ok());
    const auto changed = journal->Change("a", [](JobRow* row) {
      row->state = v1::DETACHED_STATE_FAILED;
      row->last_sequence = 7;
      row->message = "it failed";
      row->code = 13;
      row->expires = 1060;
      return absl::OkStatus();
    });
    ASSERT_TRUE(changed.ok()) << changed.status();
    EXPECT_TRUE(absl::IsAborted(journal
                                    ->Change("a",
                                             [](JobRow* row) {
                                               row->code = 1;
                                               return absl::AbortedError("no");
                                             })
                                    .status()));
    EXPECT_TRUE(absl::IsNotFound(journal->Change("b", [](JobRow*) { return absl::OkStatus(); }).status()));
  }
  const auto journal = Open();
  const auto row = journal->FindRequest("me", "one");
  ASSERT_TRUE(row.ok() && row->has_value()) << row.status();
  EXPECT_EQ((*row)->id, "a");
  EXPECT_EQ((*row)->header, std::string("header\0of", 9) + "a");
  EXPECT_EQ((*row)->image, "image of a");
  EXPECT_EQ((*row)->keep_seconds, 60);
  EXPECT_EQ((*row)->submitted, 1000);
  EXPECT_EQ((*row)->state, v1::DETACHED_STATE_FAILED);
  EXPECT_EQ((*row)->last_sequence, 7u);
  EXPECT_EQ((*row)->message, "it failed");
  EXPECT_EQ((*row)->code, 13);
  EXPECT_EQ((*row)->input_bytes, 10);
  ASSERT_TRUE(journal->Delete("a").ok());
  EXPECT_FALSE(journal->Find("a")->has_value());
}

TEST_F(JournalTest, ListsNewestFirstByOwnerStateAndPage) {
  const auto journal = Open();
  for (const char* id : {"a", "b", "c", "d"}) {
    JobRow row = Row(id, *id == 'b' ? "you" : "me", id);
    row.submitted = 1000 + (*id - 'a');
    row.state = *id == 'd' ? v1::DETACHED_STATE_DONE : v1::DETACHED_STATE_QUEUED;
    row.expires = *id == 'd' ? 2000 : 0;
    ASSERT_TRUE(journal->Insert(row).ok());
  }
  Journal::Filter filter;
  EXPECT_THAT(Ids(journal->List(filter, 10)), ElementsAre("d", "c", "b", "a"));
  EXPECT_THAT((*journal->List(filter, 10))[0].header, IsEmpty());
  filter.before = (*journal->List(filter, 2))[1].number;
  EXPECT_THAT(Ids(journal->List(filter, 2)), ElementsAre("b", "a"));
  filter = {};
  filter.owner = "me";
  filter.states = {v1::DETACHED_STATE_QUEUED, v1::DETACHED_STATE_RUNNING};
  EXPECT_THAT(Ids(journal->List(filter, 10)), ElementsAre("c", "a"));
  filter.submitted_after = 1001;
  EXPECT_THAT(Ids(journal->List(filter, 10)), ElementsAre("c"));
  EXPECT_EQ(*journal->NextExpiry(), 2000);
  EXPECT_THAT(Ids(journal->Expired(1999, 10)), IsEmpty());
  EXPECT_THAT(Ids(journal->Expired(2000, 10)), ElementsAre("d"));
}

TEST_F(JournalTest, SaysWhatIsWrongWithAFileThatItCannotUse) {
  WriteBytes(path_, std::string(5000, 'x'));
  EXPECT_TRUE(absl::IsDataLoss(Journal::Open(path_).status())) << Journal::Open(path_).status();
  std::filesystem::remove(path_);
  {
    auto newer = SqlDatabase::Open(path_);
    ASSERT_TRUE(newer->Execute("PRAGMA user_version=3").ok());
  }
  EXPECT_THAT(Journal::Open(path_).status().message(), HasSubstr("version 3"));
  EXPECT_TRUE(absl::IsFailedPrecondition(Journal::Open(path_).status()));
  std::filesystem::remove(path_);
  std::filesystem::create_directory(path_);
  EXPECT_TRUE(absl::IsUnavailable(Journal::Open(path_).status())) << Journal::Open(path_).status();
}

TEST_F(JournalTest, TakesNoNumberThatNoListReachesOrNoJobCanFollow) {
  for (const char* number : {"-1", "4611686018427387905", "9223372036854775807"}) {
    std::filesystem::remove(path_);
    ASSERT_TRUE(Open()->Insert(Row("a", "me", "one")).ok());
    ASSERT_TRUE(
        SqlDatabase::Open(path_)->Execute(absl::StrCat("UPDATE jobs SET number = ", number).c_str()).ok());
    const absl::Status status = Journal::Open(path_).status();
    EXPECT_TRUE(absl::IsDataLoss(status)) << status;
    EXPECT_THAT(status.message(), HasSubstr(absl::StrCat("number is ", number))) << status;
  }
}

// SQLite has no checksums: a damaged cell reads as another value.
TEST_F(JournalTest, TakesNoValueThatNoJobHas) {
  for (const char* damage : {"state = 0",
                             "state = 77",
                             "state = -1",
                             "state = 4294967297",
                             "priority = 11",
                             "keep_seconds = -1",
                             "id = '../../x'",
                             "id = ''",
                             "submitted = -1",
                             "ended = 9e999",
                             "expires = 1",
                             "runs = -1",
                             "setbacks = 1e300",
                             "bundles_done = 4294967296",
                             "last_sequence = -1",
                             "acknowledged = 1",
                             "input_bytes = -4096",
                             "result_bytes = 9223372036854775807",
                             "code = 17",
                             "code = 13",
                             "state = 4",
                             "message = CAST(x'ff' AS TEXT)",
                             "owner = CAST(x'c328' AS TEXT)"}) {
    std::filesystem::remove(path_);
    ASSERT_TRUE(Open()->Insert(Row("a", "me", "one")).ok());
    ASSERT_TRUE(SqlDatabase::Open(path_)->Execute(absl::StrCat("UPDATE jobs SET ", damage).c_str()).ok())
        << damage;
    const absl::Status status = Journal::Open(path_).status();
    EXPECT_TRUE(absl::IsDataLoss(status)) << damage << ": " << status;
    EXPECT_THAT(status.message(), HasSubstr("job 1: ")) << damage;
  }
}

// Values that a job may have, but this one has others.
TEST_F(JournalTest, TakesNoValueButTheOneThatWasWritten) {
  for (const char* damage :
       {"priority = 3", "message = 'other'", "image = 'other'", "request_id = 'two'", "owner = 'you'",
        "id = 'b'", "deadline = 5", "submitted = 1000.0001", "keep_seconds = 61", "state = 2", "digest = ''",
        "header = x'00'", "header_checksum = 0", "checksum = 0"}) {
    std::filesystem::remove(path_);
    ASSERT_TRUE(Open()->Insert(Row("a", "me", "one")).ok());
    ASSERT_TRUE(SqlDatabase::Open(path_)->Execute(absl::StrCat("UPDATE jobs SET ", damage).c_str()).ok());
    const absl::Status status = Journal::Open(path_).status();
    EXPECT_TRUE(absl::IsDataLoss(status)) << damage << ": " << status;
    EXPECT_THAT(status.message(), AllOf(HasSubstr("job 1: "), HasSubstr("checksum"))) << damage;
  }
}

TEST_F(JournalTest, TakesUpAJournalOfVersion1) {
  ASSERT_TRUE(Open()->Insert(Row("a", "me", "one")).ok());
  const absl::Status older = SqlDatabase::Open(path_)->Execute(
      "DROP INDEX jobs_deadline; ALTER TABLE jobs DROP COLUMN deadline; "
      "ALTER TABLE jobs DROP COLUMN header_checksum; ALTER TABLE jobs DROP COLUMN checksum; "
      "PRAGMA user_version=1");
  ASSERT_TRUE(older.ok()) << older;
  for (int start = 0; start < 2; ++start) {
    const auto journal = Open();
    const auto row = journal->Find("a");
    ASSERT_TRUE(row.ok() && row->has_value()) << row.status();
    EXPECT_EQ((*row)->header, std::string("header\0of", 9) + "a");
    EXPECT_EQ((*row)->deadline, 0);
  }
}

TEST_F(JournalTest, FindsJobsThatAreLate) {
  const auto journal = Open();
  for (const char* id : {"a", "b", "c", "d"}) {
    JobRow row = Row(id, "me", id);
    row.deadline = *id == 'a' ? 0 : 2000 + *id;
    row.state = *id == 'b' ? v1::DETACHED_STATE_DONE : v1::DETACHED_STATE_QUEUED;
    row.expires = *id == 'b' ? 3000 : 0;
    ASSERT_TRUE(journal->Insert(row).ok());
  }
  EXPECT_EQ(*journal->NextDeadline(), 2000 + 'c');
  EXPECT_THAT(Ids(journal->Late(2000 + 'c' - 1, 10)), IsEmpty());
  EXPECT_THAT(Ids(journal->Late(3000, 1)), ElementsAre("c"));
  EXPECT_THAT(Ids(journal->Late(3000, 10)), ElementsAre("c", "d"));
}

TEST_F(JournalTest, WritesNoValueThatItWouldNotTake) {
  const auto journal = Open();
  JobRow row = Row("a", "me", "one");
  row.owner = "\xff";
  EXPECT_TRUE(absl::IsInternal(journal->Insert(row)));
  ASSERT_TRUE(journal->Insert(Row("a", "me", "one")).ok());
  const auto changed = journal->Change("a", [](JobRow* changing) {
    changing->result_bytes = -1;
    return absl::OkStatus();
  });
  EXPECT_TRUE(absl::IsInternal(changed.status())) << changed.status();
  EXPECT_EQ((*journal->Find("a"))->result_bytes, 0);
}

TEST_F(JournalTest, TakesNoNameThatIsNoText) {
  for (const char* damage : {"id = x'61'", "owner = x'6d65'", "request_id = x'6f6e65'"}) {
    std::filesystem::remove(path_);
    ASSERT_TRUE(Open()->Insert(Row("a", "me", "one")).ok());
    ASSERT_TRUE(SqlDatabase::Open(path_)->Execute(absl::StrCat("UPDATE jobs SET ", damage).c_str()).ok());
    EXPECT_TRUE(absl::IsDataLoss(Journal::Open(path_).status())) << damage;
  }
}

// A job that is listed would not be found by this name.
TEST_F(JournalTest, SeesAnIndexThatHasOtherRows) {
  ASSERT_TRUE(Open()->Insert(Row("a", "me", "one")).ok());
  const auto swapped = SqlDatabase::Open(path_)->Execute(
      "PRAGMA writable_schema=ON; "
      "UPDATE sqlite_master SET rootpage = (SELECT SUM(rootpage) FROM sqlite_master WHERE name LIKE "
      "'sqlite_autoindex_jobs_%') - rootpage WHERE name LIKE 'sqlite_autoindex_jobs_%'");
  ASSERT_TRUE(swapped.ok()) << swapped;
  EXPECT_TRUE(absl::IsDataLoss(Journal::Open(path_).status())) << Journal::Open(path_).status();
}

class StoreTest : public ::testing::Test {
 protected:
  StoreTest() : log_(LogLevel::kInfo, MakeStreamSink(&lines_)) {}
  std::unique_ptr<JobStore> Open(int64_t disk_bytes = 1 << 20) {
    auto store = JobStore::Open({folder_ / "jobs", {disk_bytes, disk_bytes}}, &log_);
    EXPECT_TRUE(store.ok()) << store.status();
    return store.ok() ? *std::move(store) : nullptr;
  }
  static JobStore::Submission Submission(const std::string& request_id) {
    JobStore::Submission submission;
    submission.row.owner = "me";
    submission.row.request_id = request_id;
    submission.row.header = "header";
    submission.row.digest = "digest of " + request_id;
    submission.row.keep_seconds = 1000;
    submission.inputs = {{"image", "pixels"}};
    return submission;
  }
  static std::string Add(JobStore* store, const std::string& request_id) {
    const auto submitted = Add(store, Submission(request_id));
    EXPECT_TRUE(submitted.ok()) << submitted.status();
    return submitted->row.id;
  }
  static absl::StatusOr<JobStore::Submitted> Add(JobStore* store, const JobStore::Submission& submission) {
    auto disk = DiskHold::Take(&store->space(), "me", JobStore::BytesOf("header", 6));
    EXPECT_TRUE(disk.ok()) << disk.status();
    return store->Add(submission, &*disk);
  }
  std::vector<std::string> Files() const {
    std::vector<std::string> names;
    for (const auto& entry : std::filesystem::directory_iterator(folder_ / "jobs/jobs"))
      names.push_back(entry.path().filename());
    std::sort(names.begin(), names.end());
    return names;
  }

  std::string Journal() const { return folder_ / "jobs/journal.db"; }
  std::vector<std::string> Asides() const {
    std::vector<std::string> folders;
    for (const auto& entry : std::filesystem::directory_iterator(folder_ / "jobs")) {
      if (entry.path().filename().string().rfind("damaged-", 0) == 0) folders.push_back(entry.path());
    }
    return folders;
  }
  // The files of jobs that were set aside with damaged journals.
  std::vector<std::string> SetAside() const {
    std::vector<std::string> names;
    for (const std::string& aside : Asides()) {
      for (const auto& entry : std::filesystem::directory_iterator(aside + "/jobs"))
        names.push_back(entry.path().filename());
    }
    return names;
  }

  TempFolder folder_;
  std::ostringstream lines_;
  Logger log_;
  const Identity me_{"me", {true, true, false}}, you_{"you", {true, true, false}},
      root_{"root", Roles::All()};
};

TEST_F(StoreTest, KeepsAJobAndSweepsWhatIsOfNoUse) {
  std::string id;
  {
    const auto store = Open();
    id = Add(store.get(), "one");
    EXPECT_THAT(Files(), ElementsAre(id + ".image"));
    EXPECT_EQ(ReadBytes(store->InputPath(id, "image")), "pixels");
    WriteBytes(folder_ / "jobs/jobs/stranger.image", "x");
    WriteBytes(folder_ / ("jobs/jobs/" + id + ".psf.tmp"), "x");
  }
  const auto store = Open();
  EXPECT_THAT(Files(), ElementsAre(id + ".image"));
  EXPECT_EQ(store->stats().swept, 2);
  EXPECT_EQ(store->stats().recovered, 1);
  EXPECT_EQ(store->stats().disk_bytes, JobStore::BytesOf("header", 6));
  const auto unfinished = store->TakeRecovered();
  ASSERT_THAT(unfinished, SizeIs(1));
  EXPECT_EQ(unfinished[0].id, id);
}

TEST_F(StoreTest, GivesTheSameJobForTheSameRequestAlone) {
  const auto store = Open();
  const std::string id = Add(store.get(), "one");
  const auto again = Add(store.get(), Submission("one"));
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_TRUE(again->existed);
  EXPECT_EQ(again->row.id, id);
  JobStore::Submission other = Submission("one");
  other.row.digest = "another";
  EXPECT_TRUE(absl::IsAlreadyExists(Add(store.get(), other).status()));
  EXPECT_THAT(Files(), ElementsAre(id + ".image"));
  EXPECT_EQ(store->space().used(), JobStore::BytesOf("header", 6));
}

TEST_F(StoreTest, CountsTheDiskOfFilesThatStayWhereTheJournalFails) {
  {
    const auto store = Open();
    JobStore::Submission bad = Submission("bad");
    bad.row.priority = 1000;  // which the journal takes for no job's
    EXPECT_EQ(Add(store.get(), bad).status().code(), absl::StatusCode::kInternal);
    EXPECT_THAT(Files(), SizeIs(1));
    EXPECT_EQ(store->space().used(), JobStore::BytesOf("header", 6));
    EXPECT_THAT(store->AllLive(), IsEmpty());
  }
  const auto store = Open();
  EXPECT_THAT(Files(), IsEmpty());
  EXPECT_EQ(store->space().used(), 0);
}

TEST_F(StoreTest, ShowsJobsToTheirOwnersAndAdministrators) {
  const auto store = Open();
  const std::string id = Add(store.get(), "one");
  EXPECT_TRUE(store->Get(me_, id).ok());
  EXPECT_TRUE(store->Get(root_, id).ok());
  bool cancelled = false;
  for (const absl::Status& status :
       {store->Get(you_, id).status(), store->Acknowledge(you_, id, 0).status(),
        store->Cancel(you_, id, &cancelled).status(), store->Watch(you_, id, 0).status(),
        store->Get(me_, "no such").status()}) {
    EXPECT_TRUE(absl::IsNotFound(status)) << status;
    EXPECT_EQ(ToGrpcStatus(status).error_details(), "") << "what is concealed stays on the server";
  }
  EXPECT_TRUE(absl::IsPermissionDenied(Revealed(store->Get(you_, id).status())));
  EXPECT_TRUE(absl::IsNotFound(Revealed(store->Get(me_, "no such").status())));
}

TEST_F(StoreTest, GivesDiskBackAsAJobEndsIsAcknowledgedAndExpires) {
  const auto store = Open();
  const std::string id = Add(store.get(), "one");
  ASSERT_TRUE(store->Started(id).ok());
  ASSERT_TRUE(store->ReserveForResults(id, 1000).ok());
  ASSERT_TRUE(store->ReserveForResults(id, 900).ok()) << "as a run does that repeats another one";
  EXPECT_EQ(store->space().used(), JobStore::BytesOf("header", 6) + 1000);
  SpoolContent content;
  content.last_sequence = 3;
  content.bytes = 400;
  ASSERT_TRUE(store->Show(id, content, 1).ok());
  WriteBytes(store->SpoolPath(id), "results");
  ASSERT_TRUE(store->End(id, absl::OkStatus()).ok());
  store->Leave(id);
  EXPECT_EQ(store->space().used(), JobStore::BytesOf("header", 0) + 400);
  EXPECT_THAT(Files(), ElementsAre(id + ".spool"));
  EXPECT_TRUE(absl::IsOutOfRange(store->Acknowledge(me_, id, 4).status()));
  ASSERT_TRUE(store->Acknowledge(me_, id, 2).ok());
  EXPECT_TRUE(absl::IsOutOfRange(store->Watch(me_, id, 1).status()));
  EXPECT_TRUE(absl::IsOutOfRange(store->Watch(me_, id, 4).status()));
  EXPECT_TRUE(store->Watch(me_, id, 2).ok());
  EXPECT_THAT(Files(), SizeIs(1));
  ASSERT_TRUE(store->Acknowledge(me_, id, 3).ok());
  EXPECT_THAT(Files(), IsEmpty());
  EXPECT_EQ(store->space().used(), JobStore::BytesOf("header", 0));
  EXPECT_EQ(store->stats().jobs[v1::DETACHED_STATE_DONE], 1);
}

TEST_F(StoreTest, KeepsFilesOfJobsWhoseJournalIsGone) {
  std::string id;
  {
    const auto store = Open();
    id = Add(store.get(), "one");
  }
  std::filesystem::remove(folder_ / "jobs/journal.db");
  const auto store = Open();
  EXPECT_EQ(store->stats().damaged_journals, 1);
  EXPECT_EQ(store->stats().swept, 0);
  EXPECT_THAT(Files(), IsEmpty());
  int kept = 0;
  for (const auto& file : std::filesystem::recursive_directory_iterator((folder_ / "jobs").c_str()))
    kept += file.path().filename() == id + ".image" ? 1 : 0;
  EXPECT_EQ(kept, 1);
}

TEST_F(StoreTest, RemovesJobsWhoseTimeHasPassedBesideThoseInUse) {
  const auto store = Open();
  std::vector<std::string> ids;
  for (const char* name : {"first", "second"}) {
    JobStore::Submission brief = Submission(name);
    brief.row.keep_seconds = 0;
    ids.push_back(Add(store.get(), brief)->row.id);
    bool cancelled = false;
    ASSERT_TRUE(store->Cancel(me_, ids.back(), &cancelled).ok());
  }
  store->Leave(ids[1]);  // the first one still runs
  EXPECT_EQ(store->RemoveExpired(), 1);
  EXPECT_TRUE(store->Get(me_, ids[0]).ok());
  EXPECT_TRUE(absl::IsNotFound(store->Get(me_, ids[1]).status()));
  store->Leave(ids[0]);
  store->RemoveExpired();
  EXPECT_TRUE(absl::IsNotFound(store->Get(me_, ids[0]).status()));
}

TEST_F(StoreTest, RemovesJobsWhoseTimeHasPassed) {
  const auto store = Open();
  JobStore::Submission brief = Submission("brief");
  brief.row.keep_seconds = 0;
  const std::string id = Add(store.get(), brief)->row.id;
  bool cancelled = false;
  ASSERT_TRUE(store->Cancel(me_, id, &cancelled).ok());
  EXPECT_TRUE(cancelled);
  store->Leave(id);
  EXPECT_GT(store->RemoveExpired(), 1);
  EXPECT_TRUE(absl::IsNotFound(store->Get(me_, id).status()));
  EXPECT_EQ(store->space().used(), 0);
  EXPECT_EQ(store->stats().expired, 1);
}

TEST_F(StoreTest, GivesUpAJobAfterThreeDeathsOfTheServerWhateverElseHappened) {
  std::string id, other;
  {
    const auto store = Open();
    id = Add(store.get(), "one");
    other = Add(store.get(), "other");
    // Neither is a death: a run that made room for the server's end, and one whose device failed.
    ASSERT_TRUE(store->Started(id).ok());
    ASSERT_TRUE(store->WaitAgain(id, JobStore::Setback::kNone).ok());
    ASSERT_TRUE(store->Started(id).ok());
    ASSERT_TRUE(store->WaitAgain(id, JobStore::Setback::kDeviceFailed).ok());
  }
  for (uint64_t death = 1; death <= 3; ++death) {
    const auto store = Open();
    ASSERT_THAT(store->TakeRecovered(), SizeIs(2)) << death;
    EXPECT_EQ(IsLastTry(*store->Get(me_, id)), death == 3);
    ASSERT_TRUE(store->Started(id).ok());
    SpoolContent content;
    content.last_sequence = death;
    ASSERT_TRUE(store->Show(id, content, 5).ok()) << "new results put it off for no longer";
  }
  const auto store = Open();
  const std::vector<JobRow> recovered = store->TakeRecovered();
  ASSERT_THAT(recovered, SizeIs(2));
  EXPECT_TRUE(recovered[0].has_ended());
  EXPECT_FALSE(recovered[1].has_ended());
  EXPECT_EQ(store->Get(me_, other)->deaths(), 0) << "it only waited";
  const auto row = store->Get(me_, id);
  EXPECT_EQ(row->state, v1::DETACHED_STATE_FAILED);
  EXPECT_EQ(row->code, static_cast<int>(absl::StatusCode::kInternal));
  EXPECT_THAT(row->message, HasSubstr("was begun 5 times, and the server died during 3 of these runs"));
  EXPECT_THAT(Files(), ElementsAre(other + ".image"));
}

TEST_F(StoreTest, GivesUpAJobWhoseDeviceFailsMoreThan100TimesWithoutANewResult) {
  const auto store = Open();
  const std::string id = Add(store.get(), "one");
  const auto fail = [&] {
    EXPECT_TRUE(store->Started(id).ok());
    return store->WaitAgain(id, JobStore::Setback::kDeviceFailed)->has_ended();
  };
  EXPECT_FALSE(fail());
  ASSERT_TRUE(store->Started(id).ok());
  SpoolContent content;
  content.last_sequence = 1;
  ASSERT_TRUE(store->Show(id, content, 5).ok());
  for (int failures = 1; failures <= 100; ++failures) ASSERT_FALSE(fail()) << failures;
  EXPECT_TRUE(fail());
  EXPECT_THAT(store->Get(me_, id)->message, HasSubstr("its device failed 101 times without a new result"));
}

TEST_F(StoreTest, MovesADamagedJournalAsideWithItsFiles) {
  std::string id;
  {
    const auto store = Open();
    id = Add(store.get(), "one");
  }
  WriteBytes(folder_ / "jobs/journal.db", std::string(8192, 'x'));
  const auto store = Open();
  EXPECT_EQ(store->stats().damaged_journals, 1);
  EXPECT_TRUE(absl::IsNotFound(store->Get(me_, id).status()));
  std::string aside;
  for (const auto& entry : std::filesystem::directory_iterator(folder_ / "jobs")) {
    if (entry.path().filename().string().rfind("damaged-", 0) == 0) aside = entry.path();
  }
  EXPECT_EQ(ReadBytes(aside + "/jobs/" + id + ".image"), "pixels");
  EXPECT_EQ(ReadBytes(aside + "/journal.db").size(), 8192u);
  Add(store.get(), "two");
  log_.Flush();
  EXPECT_THAT(lines_.str(), HasSubstr("journal_damaged"));
}

// A state that there is not would be counted outside of all counters, and an id is part of files' names.
TEST_F(StoreTest, MovesAJournalAsideInWhichAJobIsDamaged) {
  for (const char* damage : {"state = 1000000", "id = '../../other'"}) {
    {
      const auto store = Open();
      Add(store.get(), "one");
    }
    WriteBytes(folder_ / "other.image", "not a job's");
    WriteBytes(folder_ / "other.spool", "not a job's");
    ASSERT_TRUE(SqlDatabase::Open(folder_ / "jobs/journal.db")
                    ->Execute(absl::StrCat("UPDATE jobs SET ", damage).c_str())
                    .ok());
    const auto store = Open();
    EXPECT_EQ(store->stats().damaged_journals, 1) << damage;
    EXPECT_THAT(store->TakeRecovered(), IsEmpty()) << damage;
    EXPECT_EQ(ReadBytes(folder_ / "other.image"), "not a job's");
    EXPECT_EQ(ReadBytes(folder_ / "other.spool"), "not a job's");
  }
}

TEST_F(StoreTest, GoesOnWithTheIntactJobsOfADamagedJournal) {
  std::map<std::string, std::string> ids;
  {
    const auto store = Open();
    for (const char* name : {"one", "two", "three"}) ids[name] = Add(store.get(), name);
  }
  ASSERT_TRUE(
      SqlDatabase::Open(Journal())->Execute("UPDATE jobs SET priority = 3 WHERE request_id = 'two'").ok());
  {
    const auto store = Open();
    EXPECT_EQ(store->stats().damaged_journals, 1);
    EXPECT_EQ(store->stats().damaged_jobs, 1);
    EXPECT_TRUE(absl::IsNotFound(store->Get(me_, ids["two"]).status()));
    EXPECT_EQ(store->Get(me_, ids["one"])->number, 1);
    EXPECT_EQ(store->Get(me_, ids["three"])->number, 3);
    EXPECT_EQ(ReadBytes(store->InputPath(ids["three"], "image")), "pixels");
    EXPECT_THAT(store->TakeRecovered(), SizeIs(2));
    EXPECT_EQ(store->Get(me_, Add(store.get(), "two"))->number, 4);
  }
  EXPECT_THAT(SetAside(), ElementsAre(ids["two"] + ".image"));
  log_.Flush();
  EXPECT_THAT(lines_.str(),
              AllOf(HasSubstr("journal_damaged"), HasSubstr("job_damaged"), HasSubstr(ids["two"])));
  const auto again = Open();
  EXPECT_EQ(again->stats().damaged_journals, 0);
  EXPECT_THAT(again->TakeRecovered(), SizeIs(3));
}

TEST_F(StoreTest, FindsAllJobsOfAJournalThatLostItsFirstPage) {
  std::vector<std::string> ids;
  {
    const auto store = Open();
    for (const char* name : {"one", "two"}) ids.push_back(Add(store.get(), name));
  }
  WriteBytes(Journal(), std::string(4096, 'x') + ReadBytes(Journal()).substr(4096));
  const auto store = Open();
  EXPECT_EQ(store->stats().damaged_journals, 1);
  EXPECT_EQ(store->stats().damaged_jobs, 0);
  for (const std::string& id : ids) EXPECT_TRUE(store->Get(me_, id).ok());
}

TEST_F(StoreTest, FindsAllJobsOfAJournalThatCannotBeChanged) {
  std::string id;
  {
    const auto store = Open();
    id = Add(store.get(), "one");
  }
  std::string bytes = ReadBytes(Journal());
  bytes[18] = 3;  // a file of this version is read by SQLite, but not written
  WriteBytes(Journal(), bytes);
  const auto store = Open();
  ASSERT_NE(store, nullptr);
  EXPECT_EQ(store->stats().damaged_journals, 1);
  EXPECT_EQ(store->stats().damaged_jobs, 0);
  EXPECT_TRUE(store->Get(me_, id).ok());
}

// Whichever step a server ended in: the one before the damaged journal was moved, or the one behind it.
TEST_F(StoreTest, FinishesARescueThatWasInterrupted) {
  for (const bool moved : {false, true}) {
    std::string id;
    {
      const auto store = Open();
      id = Add(store.get(), moved ? "first" : "second");
    }
    WriteBytes(folder_ / ("jobs/jobs/" + std::string(kJobIdBytes, 'f') + ".image"),
               "of a job that was damaged");
    ASSERT_TRUE(RescueJournal(Journal(), Journal() + "-rescued").ok());
    if (moved) {
      std::filesystem::rename(Journal(), folder_ / "moved");
    } else {
      WriteBytes(Journal(), std::string(8192, 'x'));
    }
    WriteBytes(Journal() + "-rescue", "of an earlier attempt");
    const auto store = Open();
    EXPECT_EQ(store->stats().damaged_journals, 1);
    EXPECT_TRUE(store->Get(me_, id).ok());
    EXPECT_FALSE(std::filesystem::exists(Journal() + "-rescued"));
    EXPECT_THAT(SetAside(), Contains(std::string(kJobIdBytes, 'f') + ".image"));
  }
}

// What a job says is what was written, or the job is lost and its file is set aside.
TEST_F(StoreTest, ServesNoJobWrongWhicheverByteOfItsJournalIsDamaged) {
  constexpr int kJobs = 30, kDamages = 24;
  constexpr size_t kPage = 4096;
  // The bytes of the file's version: other values may be those of a newer spexd.
  const auto refuses = [](size_t at) { return at >= 60 && at < 64; };
  const unsigned seed = std::random_device()();
  std::cout << "seed " << seed << "\n";
  std::mt19937 random(seed);
  std::map<std::string, JobRow> rows;
  {
    const auto store = Open();
    for (int k = 0; k < kJobs; ++k) {
      JobStore::Submission submission = Submission(absl::StrCat("request ", k));
      submission.row.header.assign(600, static_cast<char>('a' + k % 26));
      const std::string id = Add(store.get(), submission)->row.id;
      rows[id] = *store->Get(me_, id);
    }
  }
  const std::string good = ReadBytes(Journal());
  ASSERT_GT(good.size(), 4 * kPage);
  for (int damage = 0; damage < kDamages; ++damage) {
    std::string bad = good;
    // A third of them in the first page, which has the names of the tables.
    const size_t most = damage % 3 == 0 ? kPage - 1 : good.size() - 1;
    size_t at = 0;
    do {
      at = std::uniform_int_distribution<size_t>(0, most)(random);
    } while (refuses(at));
    bad[at] = static_cast<char>(bad[at] ^ (1 << random() % 8));
    SCOPED_TRACE(::testing::Message() << "byte " << at);
    for (const char* end : {"-wal", "-shm"}) std::filesystem::remove(Journal() + end);
    for (const std::string& aside : Asides()) std::filesystem::remove_all(aside);
    for (const std::string& file : Files()) std::filesystem::remove(folder_ / ("jobs/jobs/" + file));
    WriteBytes(Journal(), bad);
    for (const auto& [id, row] : rows) WriteBytes(folder_ / ("jobs/jobs/" + id + ".image"), "pixels");
    const auto store = Open();
    ASSERT_NE(store, nullptr);
    std::set<std::string> lost;
    for (const auto& [id, row] : rows) {
      const auto got = store->Get(me_, id);
      if (!got.ok()) {
        EXPECT_TRUE(absl::IsNotFound(got.status())) << got.status();
        lost.insert(id + ".image");
        continue;
      }
      EXPECT_EQ(got->number, row.number);
      EXPECT_EQ(got->header, row.header);
      EXPECT_EQ(got->request_id, row.request_id);
      EXPECT_EQ(got->digest, row.digest);
      EXPECT_EQ(got->submitted, row.submitted);
      EXPECT_EQ(got->state, row.state);
      EXPECT_EQ(ReadBytes(store->InputPath(id, "image")), "pixels");
    }
    const std::vector<std::string> aside = SetAside();
    EXPECT_EQ(std::set<std::string>(aside.begin(), aside.end()), lost);
    EXPECT_EQ(store->TakeRecovered().size(), rows.size() - lost.size());
    EXPECT_TRUE(store->Get(me_, Add(store.get(), absl::StrCat("after ", damage))).ok());
  }
}

TEST_F(StoreTest, EndsJobsWhoseDeadlineHasPassed) {
  std::string late, early;
  {
    const auto store = Open();
    JobStore::Submission submission = Submission("early");
    submission.deadline_seconds = 1000;
    early = Add(store.get(), submission)->row.id;
    EXPECT_THAT(*store->EndLate(10), IsEmpty());
    EXPECT_GT(*store->SecondsToDeadline(), 100);
    submission = Submission("late");
    submission.row.deadline = 1;
    late = Add(store.get(), submission)->row.id;
  }
  const auto store = Open();
  EXPECT_LT(*store->SecondsToDeadline(), 0);
  const auto ended = store->EndLate(10);
  ASSERT_TRUE(ended.ok()) << ended.status();
  ASSERT_THAT(*ended, SizeIs(1));
  EXPECT_EQ((*ended)[0].id, late);
  EXPECT_TRUE(store->Live(late) != nullptr) << "until it is left";
  store->Leave(late);
  EXPECT_EQ(store->Get(me_, late)->code, static_cast<int>(absl::StatusCode::kDeadlineExceeded));
  EXPECT_EQ(store->Get(me_, early)->state, v1::DETACHED_STATE_QUEUED);
  EXPECT_THAT(*store->EndLate(10), IsEmpty());
}

TEST_F(StoreTest, KeepsMessagesThatAreNoUtf8Readable) {
  const auto store = Open();
  const std::string id = Add(store.get(), "one");
  ASSERT_TRUE(store->End(id, absl::DataLossError("file \xff\xfe is damaged")).ok());
  EXPECT_EQ(store->Get(me_, id)->message, "file \\xff\\xfe is damaged");
}

TEST_F(StoreTest, ClosesItsFolderAndItsJournalToOtherUsers) {
  namespace fs = std::filesystem;
  fs::create_directory(folder_ / "jobs");
  fs::permissions(folder_ / "jobs", fs::perms::all);
  WriteBytes(folder_ / "jobs/journal.db", "");
  fs::permissions(folder_ / "jobs/journal.db", fs::perms::owner_write | fs::perms::owner_read |
                                                   fs::perms::group_read | fs::perms::others_read);
  const auto store = Open();
  Add(store.get(), "one");
  constexpr fs::perms kOthers = fs::perms::group_all | fs::perms::others_all;
  EXPECT_EQ(fs::status(folder_ / "jobs").permissions(), fs::perms::owner_all);
  int files = 0;
  for (const auto& entry : fs::recursive_directory_iterator(folder_ / "jobs")) {
    EXPECT_EQ(entry.status().permissions() & kOthers, fs::perms::none) << entry.path();
    ++files;
  }
  EXPECT_GE(files, 5);  // lock, journal with its log and index, reserve
}

TEST(MakeFolder, SyncsTheFolderItLiesIn) {
  const TempFolder folder;
  const auto inode = [](const std::string& path) {
    struct stat status = {};
    EXPECT_EQ(stat(path.c_str(), &status), 0) << path;
    return status.st_ino;
  };
  EXPECT_TRUE(MakeFolder(folder / "a/").ok());
  EXPECT_EQ(last_synced, inode(folder.path()));
  EXPECT_TRUE(MakeFolder(folder / "a/b").ok());
  EXPECT_EQ(last_synced, inode(folder / "a"));
  EXPECT_TRUE(MakeFolder(folder / "a//").ok()) << "it is there";
  EXPECT_TRUE(MakeFolder("/").ok());
  const std::filesystem::path before = std::filesystem::current_path();
  std::filesystem::current_path(folder.path());
  EXPECT_TRUE(MakeFolder("relative").ok());
  std::filesystem::current_path(before);
  EXPECT_EQ(last_synced, inode(folder.path()));
  EXPECT_TRUE(std::filesystem::is_directory(folder / "relative"));
  EXPECT_THAT(MakeFolder(folder / "none/c").message(), HasSubstr("none/c: cannot be made"));
}

TEST_F(StoreTest, KeepsAFolderForOneServer) {
  const auto store = Open();
  EXPECT_THAT(JobStore::Open({folder_ / "jobs", {}}, &log_).status().message(), HasSubstr("another spexd"));
}

TEST(DiskSpace, LeavesAQuarterToResults) {
  DiskSpace space({100, 100});
  ASSERT_TRUE(space.TakeForInputs("me", 70).ok());
  EXPECT_TRUE(RetryDelayOf(space.TakeForInputs("you", 10)).has_value());
  EXPECT_TRUE(space.Take("me", 25, 70).ok());
  EXPECT_FALSE(RetryDelayOf(space.TakeForInputs("you", 80)).has_value());
}

TEST(DiskSpace, RefusesWithADelayWhatFitsLaterAndWithoutWhatNeverDoes) {
  DiskSpace space({100, 60});
  ASSERT_TRUE(space.Take("me", 50, 0).ok());
  EXPECT_TRUE(RetryDelayOf(space.Take("me", 20, 0)).has_value());
  EXPECT_THAT(space.Take("me", 20, 0).message(), HasSubstr("--jobs-disk-bytes-per-identity"));
  ASSERT_TRUE(space.Take("you", 40, 0).ok());
  const absl::Status full = space.Take("him", 20, 0);
  EXPECT_TRUE(absl::IsResourceExhausted(full) && RetryDelayOf(full).has_value()) << full;
  EXPECT_THAT(full.message(), AllOf(HasSubstr("90 of the 100"), HasSubstr("--jobs-disk-bytes")));
  EXPECT_FALSE(RetryDelayOf(space.Take("him", 61, 0)).has_value());
  EXPECT_FALSE(RetryDelayOf(space.Take("him", 31, 30)).has_value()) << "with what the job holds already";
  space.Give("me", 50);
  EXPECT_TRUE(space.Take("him", 20, 0).ok());
  EXPECT_EQ(space.used(), 60);
}

TEST(DiskSpace, TellsWhenRoomIsExpected) {
  using std::chrono::milliseconds;
  using std::chrono::seconds;
  const DiskSpace::Time start = DiskSpace::Now();
  DiskSpace space({.bytes = 1000, .bytes_of_owner = 1000, .jobs = 10, .jobs_of_owner = 2}, start);
  ASSERT_TRUE(space.TakeForInputs("me", 740, start).ok());
  EXPECT_EQ(RetryDelayOf(space.TakeForInputs("you", 60, start)), seconds(10)) << "nothing is known";
  // 50 bytes in 10 seconds: as many as are missing.
  space.Give("me", 50, start + seconds(10));
  const auto soon = RetryDelayOf(space.TakeForInputs("you", 110, start + seconds(10)));
  ASSERT_TRUE(soon.has_value());
  EXPECT_GT(*soon, milliseconds(9500));
  EXPECT_LE(*soon, seconds(10));
  const auto later = RetryDelayOf(space.TakeForInputs("you", 110, start + seconds(60)));
  EXPECT_GT(later, milliseconds(40000)) << "none came back since";
  const auto much = RetryDelayOf(space.TakeForInputs("you", 750, start + seconds(10)));
  EXPECT_GT(much, seconds(130)) << "14 times as many";
  EXPECT_LT(much, seconds(140));
  ASSERT_TRUE(space.TakeForInputs("me", 10, start + seconds(10)).ok());
  space.SetNextExpiry(start + seconds(12));
  EXPECT_EQ(RetryDelayOf(space.TakeForInputs("me", 10, start + seconds(10))), seconds(2)) << "a job expires";
  space.SetNextExpiry(start + seconds(86400));
  EXPECT_EQ(RetryDelayOf(space.TakeForInputs("me", 10, start + seconds(10))), seconds(300)) << "the longest";
}

TEST(DiskSpace, TakesNoMoreJobsThanTheJournalMayKeep) {
  DiskSpace space({.bytes = 1000, .bytes_of_owner = 1000, .jobs = 3, .jobs_of_owner = 2});
  space.CountJob("me", 10);
  ASSERT_TRUE(space.TakeForInputs("me", 10).ok());
  const absl::Status third = space.TakeForInputs("me", 10);
  EXPECT_TRUE(absl::IsResourceExhausted(third) && RetryDelayOf(third).has_value()) << third;
  EXPECT_THAT(third.message(), AllOf(HasSubstr("are 2"), HasSubstr("--jobs-max-kept-per-identity is 2")));
  EXPECT_TRUE(space.Take("me", 10, 10).ok()) << "results of a job that is there";
  ASSERT_TRUE(space.TakeForInputs("you", 10).ok());
  EXPECT_THAT(space.TakeForInputs("him", 10).message(), HasSubstr("--jobs-max-kept is 3"));
  space.Give("me", 10);  // no job is gone yet
  EXPECT_FALSE(space.TakeForInputs("him", 10).ok());
  space.GiveJob("me", 10);
  EXPECT_TRUE(space.TakeForInputs("him", 10).ok());
}

TEST(TurnLine, LetsOwnersTakeTurnsAndAgeMakeUpForPriority) {
  TurnLine line;
  line.Add({"old", "me", 0, 1000, 1, "", ""});
  line.Add({"urgent", "me", 5, 1100, 2, "", ""});
  line.Add({"later", "me", 0, 1001, 3, "", ""});
  line.Add({"gone", "me", 9, 1001, 4, "", ""});
  line.Add({"hers", "you", -10, 5000, 5, "", ""});
  line.Remove("gone");
  line.Remove("no such");
  EXPECT_EQ(line.Position("later"), 2);
  EXPECT_EQ(line.Position("urgent"), 0);
  std::vector<std::string> order;
  const auto anyone = [](const std::string&) { return true; };
  while (const auto job = line.Next(anyone)) order.push_back(job->id);
  EXPECT_THAT(order, ElementsAre("urgent", "hers", "old", "later"));
  line.Add({"patient", "me", 0, 1000, 1, "", ""});
  line.Add({"pushing", "me", 10, 1000 + 11 * Schedule::kLevelSeconds, 2, "", ""});
  EXPECT_EQ(line.Next(anyone)->id, "patient");
  EXPECT_EQ(line.size(), 1);
}

TEST(TurnLine, LetsAJobThatRunsAloneGoFirst) {
  TurnLine line;
  line.Add({"a1", "a", 10, 1000, 1, "", ""});
  line.Add({"b1", "b", 0, 1001, 2, "", ""});
  line.Add({"b2", "b", -10, 1002, 3, "", "", /*alone=*/true});
  line.Add({"c1", "c", 10, 1000, 4, "", "", /*alone=*/true});
  EXPECT_EQ(line.Position("b2"), 0);
  const auto anyone = [](const std::string&) { return true; };
  EXPECT_EQ(line.Next([](const std::string& owner) { return owner == "a"; })->id, "a1");
  EXPECT_EQ(line.Next(anyone)->id, "b2");
  EXPECT_TRUE(line.HasAlone());
  line.Remove("c1");
  EXPECT_FALSE(line.HasAlone());
  EXPECT_EQ(line.Next(anyone)->id, "b1");
}

TEST(TurnLine, PassesOverOwnersWhoHaveNoPlace) {
  TurnLine line;
  line.Add({"a1", "a", 10, 1000, 1, "", ""});
  line.Add({"b1", "b", 0, 1001, 2, "", ""});
  const auto all_but_a = [](const std::string& owner) { return owner != "a"; };
  EXPECT_EQ(line.Next(all_but_a)->id, "b1");
  EXPECT_FALSE(line.Next(all_but_a).has_value());
  EXPECT_EQ(line.size(), 1);
}

}  // namespace
}  // namespace spexd
