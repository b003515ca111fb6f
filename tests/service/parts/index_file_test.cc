// The index of detached jobs: a start with it finds what a start without it would find, whatever happened in
// between.
#include "server/detached/store/index_file.h"

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <thread>

#include "absl/strings/str_format.h"
#include "server/detached/check_jobs.h"
#include "server/detached/store/job_record.h"
#include "tests/service/parts/job_files.h"

namespace spexd::testing {
namespace {

namespace fs = std::filesystem;

class IndexFileTest : public JobStoreTest {
 protected:
  std::string Index() const { return Folder() + "/index"; }
  // Removes files so that a start that reads them moves the job to quarantine.
  void LoseFiles(const std::string& id) const {
    fs::remove(Path(id, "header"));
    fs::remove(Path(id, "state"));
  }
};

TEST_F(IndexFileTest, SparesAStartTheFilesOfJobsThatHaveEnded) {
  std::string ended, queued;
  StoredJob before;
  int64_t used = 0;
  {
    const auto store = Open(1);
    ended = AddEnded(store.get(), "ended");
    queued = Add(store.get(), "queued");
    store->RenewIndex();
    before = *store->Get(me_, ended);
    used = store->space().used();
  }
  LoseFiles(ended);
  const auto store = Open(1);
  EXPECT_EQ(store->stats().quarantined, 0);
  EXPECT_EQ(IndexRecord(*store->Get(me_, ended)), IndexRecord(before));
  EXPECT_EQ(store->space().used(), used);
  EXPECT_EQ(store->stats().jobs[v1::DETACHED_STATE_DONE], 1);
  EXPECT_EQ(store->FindRequest("me", "ended")->id, ended);
  const std::vector<StoredJob> recovered = store->TakeRecovered();
  ASSERT_THAT(recovered, SizeIs(1));
  EXPECT_EQ(recovered[0].id, queued);
  EXPECT_EQ(recovered[0].header, "header");
  EXPECT_EQ(store->Get(me_, Add(store.get(), "next"))->number, before.number + 2);
}

TEST_F(IndexFileTest, LeavesToTheirFilesJobsThatChangedSince) {
  std::string acknowledged, released, other, later;
  {
    const auto store = Open(1);
    acknowledged = AddEnded(store.get(), "acknowledged");
    released = AddEnded(store.get(), "released");
    other = AddEnded(store.get(), "other");
    store->RenewIndex();
    ASSERT_TRUE(store->Acknowledge(me_, acknowledged, 1).ok());
    ASSERT_TRUE(store->Acknowledge(me_, acknowledged, 2).ok());
    ASSERT_TRUE(store->Acknowledge(me_, released, 3).ok());
    later = AddEnded(store.get(), "later");
  }
  LoseFiles(other);
  for (const char* const start : {"first", "second"}) {
    SCOPED_TRACE(start);
    const auto store = Open();
    EXPECT_EQ(store->stats().quarantined, 0);
    EXPECT_EQ(store->Get(me_, acknowledged)->acknowledged, 2u);
    EXPECT_EQ(store->Get(me_, released)->acknowledged, 3u);
    EXPECT_EQ(store->Get(me_, released)->result_bytes, 0);
    EXPECT_EQ(store->Get(me_, other)->last_sequence, 3u);
    EXPECT_EQ(store->Get(me_, later)->last_sequence, 3u);
  }
}

TEST_F(IndexFileTest, ForgetsJobsThatAreGone) {
  std::string gone;
  {
    const auto store = Open(1);
    gone = AddEnded(store.get(), "gone");
    store->RenewIndex();
  }
  fs::remove_all(Folder() + "/jobs/" + gone);
  const auto store = Open();
  EXPECT_TRUE(absl::IsNotFound(store->Get(me_, gone).status()));
  EXPECT_EQ(store->space().used(), 0);
}

TEST_F(IndexFileTest, DoesNotListJobsThatAreInUse) {
  std::string id;
  {
    const auto store = Open(1);
    id = Add(store.get(), "cancelled");
    bool cancelled = false;
    ASSERT_TRUE(store->Cancel(me_, id, &cancelled).ok());
    store->RenewIndex();
    EXPECT_EQ(ReadBytes(Index()).find("\"cancelled by"), std::string::npos);
  }
  const auto store = Open();
  EXPECT_THAT(FilesOf(id), ElementsAre("header", "state")) << "a start removes its uploads";
}

TEST_F(IndexFileTest, IsIgnoredAndRemovedWhateverByteOfItIsDamagedOrCutOff) {
  std::string id, other;
  {
    const auto store = Open(1);
    id = AddEnded(store.get(), "one");
    other = AddEnded(store.get(), "other");
    store->RenewIndex();
    ASSERT_TRUE(store->Acknowledge(me_, id, 3).ok());
  }
  const std::string good = ReadBytes(Index());
  const auto expect_ignored = [&](const std::string& bad) {
    WriteBytes(Index(), bad);
    const auto store = Open();
    ASSERT_NE(store, nullptr);
    EXPECT_FALSE(fs::exists(Index()));
    EXPECT_EQ(store->stats().quarantined, 0);
    EXPECT_EQ(store->stats().disk_errors, 0) << "it is only a cache";
    EXPECT_EQ(store->Get(me_, id)->acknowledged, 3u);
    EXPECT_EQ(store->Get(me_, other)->acknowledged, 0u);
  };
  constexpr size_t kStep = 13;
  for (size_t at = good.size() - 1; at >= kStep; at -= kStep) {
    SCOPED_TRACE(at);
    std::string bad = good;
    bad[at] = static_cast<char>(bad[at] ^ 1);
    expect_ignored(bad);
    expect_ignored(good.substr(0, at));
  }
  for (size_t end = good.find('\n'); end + 1 < good.size(); end = good.find('\n', end + 1))
    expect_ignored(good.substr(0, end + 1));
  expect_ignored(good + good);
  const std::string newer = good + SealedRecord("{\"version\":2}");
  expect_ignored(absl::StrFormat("%020d", newer.size()) + newer.substr(20));
  EXPECT_THAT(Lines(), AllOf(HasSubstr("jobs_index_ignored"), HasSubstr(Index() + ": line 5"),
                             HasSubstr("it has version 2")));
}

TEST_F(IndexFileTest, IsComparedWithTheFilesOfTheJobsByACheckOfTheFolder) {
  std::string acknowledged, other;
  {
    const auto store = Open(1);
    acknowledged = AddEnded(store.get(), "acknowledged");
    other = AddEnded(store.get(), "other");
    ASSERT_TRUE(store->Acknowledge(me_, other, 3).ok());
    const std::string copy = ReadBytes(Path(acknowledged, "state"));
    ASSERT_TRUE(store->Acknowledge(me_, acknowledged, 3).ok());
    store->RenewIndex();
    EXPECT_THAT(CheckJobs(Folder()).status().code(), absl::StatusCode::kUnavailable);
    EXPECT_EQ(IndexFile::Listed(Folder())->size(), 2u);
    WriteBytes(Folder() + "/copy", copy);
  }
  EXPECT_THAT(CheckJobs(Folder())->damages, SizeIs(0));
  fs::rename(Folder() + "/copy", Path(acknowledged, "state"));
  WriteBytes(Path(acknowledged, "events"), "results");
  EXPECT_THAT(
      CheckJobs(Folder())->damages,
      ElementsAre(Folder() + "/index: it differs from header and state of job " + acknowledged +
                  "; if the job was put back from a copy, delete the index, else the state is damaged"));
  WriteBytes(Index(), "");
  EXPECT_THAT(CheckJobs(Folder())->damages, ElementsAre(HasSubstr("events: the header is cut short")));
  EXPECT_TRUE(fs::exists(Index())) << "a check changes nothing";
}

TEST_F(IndexFileTest, IsIgnoredAndRemovedIfItIsNoFile) {
  const std::string id = AddAndClose("one");
  fs::create_directories(Index() + "/folder");
  const auto store = Open();
  ASSERT_NE(store, nullptr);
  EXPECT_FALSE(fs::exists(Index()));
  EXPECT_TRUE(store->Get(me_, id).ok());
}

TEST_F(IndexFileTest, IsRemovedIfItCannotTellThatAJobChanged) {
  std::vector<std::string> ids;
  {
    const auto store = Open(1);
    for (int k = 0; k < 20; ++k) ids.push_back(AddEnded(store.get(), absl::StrCat("job ", k)));
    store->RenewIndex();
    ASSERT_GT(fs::file_size(Index()), 2 * kStateBytes);
    {
      const FileSizeLimit limit(2 * kStateBytes);  // states can still be written
      ASSERT_TRUE(store->Acknowledge(me_, ids[7], 3).ok());
    }
    EXPECT_FALSE(fs::exists(Index()));
    ASSERT_TRUE(store->Acknowledge(me_, ids[8], 3).ok());
  }
  const auto store = Open(1);
  EXPECT_EQ(store->stats().quarantined, 0);
  EXPECT_EQ(store->Get(me_, ids[7])->acknowledged, 3u);
  EXPECT_EQ(store->Get(me_, ids[8])->acknowledged, 3u);
  EXPECT_EQ(store->Get(me_, ids[9])->acknowledged, 0u);
}

TEST_F(IndexFileTest, IsWrittenAgainOnceItLacksManyJobs) {
  const auto store = Open(3);
  const auto listed_after = [&](const char* request_id) {
    AddEnded(store.get(), request_id);
    store->RenewIndex();
    const std::string lines = ReadBytes(Index());
    return std::max<int64_t>(0, std::count(lines.begin(), lines.end(), '\n') - 1);  // without the first line
  };
  EXPECT_EQ(listed_after("1"), 0);
  EXPECT_EQ(listed_after("2"), 0);
  EXPECT_EQ(listed_after("3"), 3);
  EXPECT_EQ(listed_after("4"), 3);
  EXPECT_EQ(listed_after("5"), 3);
  EXPECT_EQ(listed_after("6"), 6);
  EXPECT_FALSE(fs::exists(Index() + ".new"));
  EXPECT_EQ(fs::status(Index()).permissions(), fs::perms::owner_read | fs::perms::owner_write);
}

TEST_F(IndexFileTest, TellsWhatIsTrueWhateverChangesWhileItIsWritten) {
  std::vector<std::string> ids;
  {
    const auto store = Open(1);
    for (int k = 0; k < 20; ++k) ids.push_back(AddEnded(store.get(), absl::StrCat("job ", k)));
    std::atomic<bool> changed = false;
    std::thread changing([&] {
      for (const uint64_t upto : {1, 2, 3})
        for (const std::string& id : ids) EXPECT_TRUE(store->Acknowledge(me_, id, upto).ok());
      changed = true;
    });
    while (!changed) store->RenewIndex();
    changing.join();
  }
  const auto store = Open();
  EXPECT_TRUE(fs::exists(Index()));
  for (const std::string& id : ids) EXPECT_EQ(store->Get(me_, id)->acknowledged, 3u);
}

TEST_F(IndexFileTest, StaysAsItIsIfAnotherCannotBeWritten) {
  std::string id, later;
  {
    const auto store = Open(1);
    id = AddEnded(store.get(), "one");
    store->RenewIndex();
    const std::string before = ReadBytes(Index());
    later = AddEnded(store.get(), "later");
    {
      const FileSizeLimit limit(100);
      store->RenewIndex();
    }
    EXPECT_EQ(store->stats().disk_errors, 1);
    EXPECT_EQ(ReadBytes(Index()), before);
    EXPECT_FALSE(fs::exists(Index() + ".new"));
    ASSERT_TRUE(store->Acknowledge(me_, id, 3).ok());
    ASSERT_TRUE(store->Acknowledge(me_, later, 2).ok());
  }
  const auto store = Open();
  EXPECT_EQ(store->Get(me_, id)->acknowledged, 3u);
  EXPECT_EQ(store->Get(me_, later)->acknowledged, 2u);
}

}  // namespace
}  // namespace spexd::testing
