// The parts of detached jobs on their own: disk space, order, and their folders.
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <filesystem>

#include "server/base/files.h"
#include "server/base/retry.h"
#include "server/detached/store/disk_space.h"
#include "server/detached/waiting_jobs.h"
#include "tests/support/matchers.h"
#include "tests/support/temp_folder.h"

namespace {

// The inode that was synced last.
std::atomic<ino_t> last_synced = 0;

}  // namespace

// Replaces fsync of the whole program with a version that records the inode.
extern "C" int fsync(int file) {
  struct stat status;
  if (fstat(file, &status) == 0) last_synced = status.st_ino;
  return static_cast<int>(syscall(SYS_fsync, file));
}

namespace spexd::testing {
namespace {

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

TEST(DiskSpace, LeavesAQuarterToResults) {
  DiskSpace space({.bytes = 100});
  ASSERT_TRUE(space.TakeForInputs("me", 70).ok());
  EXPECT_TRUE(RetryDelayOf(space.TakeForInputs("you", 10)).has_value());
  EXPECT_TRUE(space.Take("me", 25, 70).ok());
  EXPECT_FALSE(RetryDelayOf(space.TakeForInputs("you", 80)).has_value());
}

TEST(DiskSpace, RefusesWithADelayWhatFitsLaterAndWithoutWhatNeverDoes) {
  DiskSpace space({.bytes = 100, .share_of = [](const std::string&) { return 0.6; }});
  ASSERT_TRUE(space.Take("me", 50, 0).ok());
  EXPECT_TRUE(RetryDelayOf(space.Take("me", 20, 0)).has_value());
  EXPECT_THAT(space.Take("me", 20, 0).message(),
              HasSubstr("of the 60 of the identity's disk-share of --jobs-disk-bytes"));
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
  DiskSpace space({.bytes = 1000, .jobs = 2}, start);
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
  DiskSpace shared({.bytes = 1000, .jobs = 4, .share_of = [](const std::string&) { return 0.5; }}, start);
  for (int k = 0; k < 2; ++k) ASSERT_TRUE(shared.TakeForInputs("me", 10, start).ok());
  shared.SetNextExpiry(start + seconds(2));
  EXPECT_EQ(RetryDelayOf(shared.TakeForInputs("me", 10, start)), seconds(2)) << "its share is full";
}

TEST(DiskSpace, AsksForAnOwnersShareWheneverTheOwnerTakesSome) {
  double share = 0.2;
  DiskSpace space(
      {.bytes = 100, .share_of = [&](const std::string& owner) { return owner == "me" ? share : 1; }});
  EXPECT_FALSE(space.Take("me", 30, 0).ok());
  EXPECT_TRUE(space.Take("you", 30, 0).ok());
  share = 0.5;
  EXPECT_TRUE(space.Take("me", 30, 0).ok());
}

TEST(DiskSpace, TakesNoMoreJobsThanMayBeKept) {
  DiskSpace space({.bytes = 1000, .jobs = 3, .share_of = [](const std::string&) { return 0.6; }});
  space.CountJob("me", 10);
  ASSERT_TRUE(space.TakeForInputs("me", 10).ok());
  const absl::Status third = space.TakeForInputs("me", 10);
  EXPECT_TRUE(absl::IsResourceExhausted(third) && RetryDelayOf(third).has_value()) << third;
  EXPECT_THAT(third.message(),
              AllOf(HasSubstr("are 2"), HasSubstr("the identity's disk-share of --jobs-max-kept is 2")));
  EXPECT_TRUE(space.Take("me", 10, 10).ok()) << "results of a job that is there";
  ASSERT_TRUE(space.TakeForInputs("you", 10).ok());
  EXPECT_THAT(space.TakeForInputs("him", 10).message(), HasSubstr("--jobs-max-kept is 3"));
  space.Give("me", 10);  // no job is removed yet
  EXPECT_FALSE(space.TakeForInputs("him", 10).ok());
  space.GiveJob("me", 10);
  EXPECT_TRUE(space.TakeForInputs("him", 10).ok());
}

TEST(WaitingJobs, LetsOwnersTakeTurnsAndAgeMakeUpForPriority) {
  WaitingJobs waiting;
  waiting.Add({"old", "me", 0, 1000, 1, "", ""});
  waiting.Add({"urgent", "me", 5, 1100, 2, "", ""});
  waiting.Add({"later", "me", 0, 1001, 3, "", ""});
  waiting.Add({"gone", "me", 9, 1001, 4, "", ""});
  waiting.Add({"hers", "you", -10, 5000, 5, "", ""});
  waiting.Remove("gone");
  waiting.Remove("no such");
  EXPECT_EQ(waiting.Position("later"), 2);
  EXPECT_EQ(waiting.Position("urgent"), 0);
  std::vector<std::string> order;
  const auto anyone = [](const std::string&) { return true; };
  while (const auto job = waiting.Next(anyone)) order.push_back(job->id);
  EXPECT_THAT(order, ElementsAre("urgent", "hers", "old", "later"));
  waiting.Add({"patient", "me", 0, 1000, 1, "", ""});
  waiting.Add({"pushing", "me", 10, 1000 + 11 * Schedule::kLevelSeconds, 2, "", ""});
  EXPECT_EQ(waiting.Next(anyone)->id, "patient");
  EXPECT_EQ(waiting.size(), 1);
}

TEST(WaitingJobs, LetsAJobThatRunsAloneGoFirst) {
  WaitingJobs waiting;
  waiting.Add({"a1", "a", 10, 1000, 1, "", ""});
  waiting.Add({"b1", "b", 0, 1001, 2, "", ""});
  waiting.Add({"b2", "b", -10, 1002, 3, "", "", /*alone=*/true});
  waiting.Add({"c1", "c", 10, 1000, 4, "", "", /*alone=*/true});
  EXPECT_EQ(waiting.Position("b2"), 0);
  const auto anyone = [](const std::string&) { return true; };
  EXPECT_EQ(waiting.Next([](const std::string& owner) { return owner == "a"; })->id, "a1");
  EXPECT_EQ(waiting.Next(anyone)->id, "b2");
  EXPECT_TRUE(waiting.HasAlone());
  waiting.Remove("c1");
  EXPECT_FALSE(waiting.HasAlone());
  EXPECT_EQ(waiting.Next(anyone)->id, "b1");
}

TEST(WaitingJobs, PassesOverOwnersWhoHaveNoRoom) {
  WaitingJobs waiting;
  waiting.Add({"a1", "a", 10, 1000, 1, "", ""});
  waiting.Add({"b1", "b", 0, 1001, 2, "", ""});
  const auto all_but_a = [](const std::string& owner) { return owner != "a"; };
  EXPECT_EQ(waiting.Next(all_but_a)->id, "b1");
  EXPECT_FALSE(waiting.Next(all_but_a).has_value());
  EXPECT_EQ(waiting.size(), 1);
}

}  // namespace
}  // namespace spexd::testing
