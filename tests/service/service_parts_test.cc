// The server's parts on their own, without gRPC and without an engine's work.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <random>
#include <sstream>
#include <thread>

#include "absl/strings/str_replace.h"
#include "core/base/crc32c.h"
#include "core/base/sha256.h"
#include "nlohmann/json.hpp"
#include "server/byte_budget.h"
#include "server/convert.h"
#include "server/job_queue.h"
#include "server/log.h"
#include "server/options.h"
#include "server/path_policy.h"
#include "server/psf_cache.h"
#include "server/retry.h"
#include "server/shared_threads.h"
#include "server/stall_watchdog.h"
#include "server/string_limits.h"
#include "server/upload.h"
#include "tests/service/fake_engine.h"
#include "tests/service/inputs.h"

namespace spexd {
namespace {

using testing::EngineControl;
using testing::FakeEngine;
using ::testing::HasSubstr;
using testing::SmallPsf;
using testing::TempFolder;
using testing::WriteText;

const std::stop_token kNever;

TEST(Crc32c, EqualsThePublishedValues) {
  EXPECT_EQ(Crc32c(""), 0u);
  EXPECT_EQ(Crc32c("123456789"), 0xE3069283u);
  EXPECT_EQ(Crc32c(std::string(32, '\0')), 0x8A9136AAu);
  EXPECT_EQ(Crc32c(std::string(32, '\xff')), 0x62A8AB43u);
}

TEST(Crc32c, IsTheSameInPiecesAndAtAnyAlignment) {
  const unsigned seed = std::random_device()();
  std::mt19937 random(seed);
  std::string bytes;
  for (int k = 0; k < 200; ++k) bytes.push_back(static_cast<char>(random()));
  const uint32_t whole = Crc32c(bytes);
  for (size_t cut = 0; cut <= bytes.size(); ++cut) {
    EXPECT_EQ(ExtendCrc32c(Crc32c(bytes.substr(0, cut)), absl::string_view(bytes).substr(cut)), whole)
        << "seed " << seed << ", cut at " << cut;
  }
}

TEST(Upload, GivesTheBytesBack) {
  Upload upload("image", 5, Sha256Hex("hello"));
  EXPECT_TRUE(upload.Append(0, "hel").ok());
  EXPECT_TRUE(upload.Append(3, "lo").ok());
  const auto bytes = upload.Finish(Sha256Hex("hello"));
  ASSERT_TRUE(bytes.ok()) << bytes.status();
  EXPECT_EQ(*bytes, "hello");
}

TEST(Upload, RefusesAGapInTheOffsets) {
  Upload upload("image", 5, "");
  const absl::Status status = upload.Append(1, "hel");
  EXPECT_TRUE(absl::IsInvalidArgument(status));
  EXPECT_THAT(std::string(status.message()), HasSubstr("offset 1, expected 0"));
}

TEST(Upload, RefusesMoreBytesThanDeclaredAndFewer) {
  Upload more("image", 5, "");
  EXPECT_TRUE(absl::IsDataLoss(more.Append(0, "hello!")));
  Upload fewer("psf", 5, "");
  EXPECT_TRUE(fewer.Append(0, "hell").ok());
  const absl::Status status = fewer.Finish("").status();
  EXPECT_TRUE(absl::IsDataLoss(status));
  EXPECT_THAT(std::string(status.message()), HasSubstr("psf: ended after 4 of 5 bytes"));
}

TEST(Upload, RefusesAChecksumThatDoesNotMatchWhereverItCameFrom) {
  Upload first("image", 5, Sha256Hex("other"));
  EXPECT_TRUE(first.Append(0, "hello").ok());
  EXPECT_TRUE(absl::IsDataLoss(first.Finish("").status()));
  Upload last("image", 5, "");
  EXPECT_TRUE(last.Append(0, "hello").ok());
  EXPECT_TRUE(absl::IsDataLoss(last.Finish(Sha256Hex("other")).status()));
  EXPECT_TRUE(absl::IsInvalidArgument(last.Append(5, "")));
}

TEST(Upload, ChecksTheCrcToo) {
  Upload good("image", 5, "");
  EXPECT_TRUE(good.Append(0, "he").ok());
  EXPECT_TRUE(good.Append(2, "llo").ok());
  EXPECT_TRUE(good.Finish("", Crc32c("hello")).ok());
  Upload bad("image", 5, "");
  EXPECT_TRUE(bad.Append(0, "hello").ok());
  const absl::Status status = bad.Finish("", Crc32c("other")).status();
  EXPECT_TRUE(absl::IsDataLoss(status));
  EXPECT_THAT(std::string(status.message()), HasSubstr("image: the CRC-32C of what came is 9a71bb4c"));
}

TEST(ByteBudget, RefusesWhatOthersHoldWithADelayAndWhatNeverFitsWithout) {
  ByteBudget budget("uploads in flight", 100);
  auto first = budget.Reserve(80);
  ASSERT_TRUE(first.ok());
  const absl::Status later = budget.Reserve(30).status();
  EXPECT_TRUE(absl::IsResourceExhausted(later));
  EXPECT_TRUE(RetryDelayOf(later).has_value());
  const absl::Status never = budget.Reserve(101).status();
  EXPECT_TRUE(absl::IsResourceExhausted(never));
  EXPECT_FALSE(RetryDelayOf(never).has_value());
  first->Release();
  EXPECT_EQ(budget.used(), 0);
  EXPECT_TRUE(budget.Reserve(100).ok());
  EXPECT_EQ(budget.used(), 0);
}

class PathPolicyTest : public ::testing::Test {
 protected:
  PathPolicyTest() {
    std::filesystem::create_directories(folder_ / "root/below");
    std::filesystem::create_directories(folder_ / "root2");
    WriteText(folder_ / "root/below/frame.fits", "frame");
    WriteText(folder_ / "root2/frame.fits", "other");
    WriteText(folder_ / "secret", "secret");
  }
  absl::StatusOr<std::string> Read(const std::string& path, int64_t limit = 1000) {
    const auto policy = PathPolicy::Make({folder_ / "root"});
    if (!policy.ok()) return policy.status();
    return policy->ReadFile(path, limit);
  }
  TempFolder folder_;
};

TEST_F(PathPolicyTest, ReadsAFileUnderARoot) {
  const auto bytes = Read(folder_ / "root/below/frame.fits");
  ASSERT_TRUE(bytes.ok()) << bytes.status();
  EXPECT_EQ(*bytes, "frame");
  EXPECT_TRUE(Read(folder_ / "root/below/../below/./frame.fits").ok());
}

TEST_F(PathPolicyTest, DeniesWhatLiesOutsideWhetherItExistsOrNot) {
  const absl::Status there = Read(folder_ / "secret").status();
  const absl::Status missing = Read(folder_ / "missing").status();
  EXPECT_TRUE(absl::IsPermissionDenied(there)) << there;
  EXPECT_TRUE(absl::IsPermissionDenied(missing)) << missing;
  EXPECT_TRUE(
      absl::IsPermissionDenied(Read(folder_ / "root2/frame.fits").status()));  // a prefix, not a parent
  EXPECT_TRUE(absl::IsPermissionDenied(Read(folder_ / "missing/deep/frame.fits").status()));
  EXPECT_TRUE(absl::IsPermissionDenied(Read("/proc/self/root" + (folder_ / "secret")).status()));
}

TEST_F(PathPolicyTest, DeniesDotDotOutOfARoot) {
  EXPECT_TRUE(absl::IsPermissionDenied(Read(folder_ / "root/../secret").status()));
  EXPECT_TRUE(absl::IsPermissionDenied(Read(folder_ / "root/below/../../secret").status()));
  EXPECT_TRUE(absl::IsPermissionDenied(Read(folder_ / "root/../missing").status()));
}

TEST_F(PathPolicyTest, FollowsLinksBeforeItJudges) {
  std::filesystem::create_symlink(folder_ / "secret", folder_ / "root/link.fits");
  std::filesystem::create_directory_symlink(folder_.path(), folder_ / "root/out");
  std::filesystem::create_symlink(folder_ / "root/below/frame.fits", folder_ / "root/good.fits");
  std::filesystem::create_symlink(folder_ / "root/below/frame.fits", folder_ / "into.fits");
  EXPECT_TRUE(absl::IsPermissionDenied(Read(folder_ / "root/link.fits").status()));
  EXPECT_TRUE(absl::IsPermissionDenied(Read(folder_ / "root/out/secret").status()));
  EXPECT_TRUE(Read(folder_ / "root/good.fits").ok());
  EXPECT_TRUE(Read(folder_ / "into.fits").ok());  // only the place of the file matters
}

TEST_F(PathPolicyTest, DoesNotTellByALinkWhetherAFileOutsideExists) {
  std::filesystem::create_symlink(folder_ / "secret", folder_ / "root/there.fits");
  std::filesystem::create_symlink(folder_ / "missing", folder_ / "root/nowhere.fits");
  const auto words = [&](const std::string& name) {
    const absl::Status status = Read(folder_ / ("root/" + name)).status();
    EXPECT_TRUE(absl::IsPermissionDenied(status)) << status;
    return absl::StrReplaceAll(status.message(), {{name, "NAME"}});
  };
  EXPECT_EQ(words("there.fits"), words("nowhere.fits"));
  EXPECT_EQ(words("there.fits/x"), words("nowhere.fits/x"));
}

TEST_F(PathPolicyTest, SaysNotFoundUnderARoot) {
  const absl::Status status = Read(folder_ / "root/missing.fits").status();
  EXPECT_TRUE(absl::IsNotFound(status)) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("missing.fits"));
  EXPECT_TRUE(absl::IsNotFound(Read(folder_ / "root/below/frame.fits/x").status()));
  std::filesystem::create_directory_symlink(folder_ / "root/below", folder_ / "root/inside");
  EXPECT_TRUE(absl::IsNotFound(Read(folder_ / "root/inside/missing.fits").status()));
}

TEST_F(PathPolicyTest, RefusesUrlsExtendedNamesAndWhatIsNoFile) {
  for (const std::string& path :
       {std::string("http://example.org/x.fits"), "file://" + (folder_ / "root/below/frame.fits"),
        folder_ / "root/below/frame.fits[1]", folder_ / "root/below/frame.fits(copy)",
        std::string("frame.fits"), std::string(),
        (folder_ / "root/below/frame.fits") + std::string(1, '\0') + ".fits", folder_ / "root/below",
        "/" + std::string(5000, 'x')}) {
    EXPECT_TRUE(absl::IsInvalidArgument(Read(path).status())) << path << ": " << Read(path).status();
  }
}

TEST_F(PathPolicyTest, RefusesAFileLargerThanTheLimit) {
  const absl::Status status = Read(folder_ / "root/below/frame.fits", 4).status();
  EXPECT_TRUE(absl::IsInvalidArgument(status));
  EXPECT_THAT(std::string(status.message()), HasSubstr("5 bytes, the limit is 4"));
}

TEST_F(PathPolicyTest, RefusesEveryPathWithoutRoots) {
  const auto policy = PathPolicy::Make({});
  ASSERT_TRUE(policy.ok());
  const absl::Status status = policy->Check(folder_ / "root/below/frame.fits");
  EXPECT_TRUE(absl::IsPermissionDenied(status));
  EXPECT_THAT(std::string(status.message()), HasSubstr("--allow-root"));
  EXPECT_TRUE(absl::IsInvalidArgument(PathPolicy::Make({folder_ / "secret"}).status()));
}

TEST(JobQueue, RunsAtMostItsNumberInTheOrderTheyCame) {
  JobQueue queue({1, 3});
  auto first = queue.Admit(), second = queue.Admit(), third = queue.Admit();
  ASSERT_TRUE(first.ok() && second.ok() && third.ok());
  EXPECT_EQ(first->position(), 0);
  EXPECT_EQ(second->position(), 1);
  EXPECT_EQ(third->position(), 2);
  ASSERT_TRUE(first->WaitForTurn(kNever).ok());
  EXPECT_EQ(queue.stats().running, 1);
  EXPECT_EQ(queue.stats().waiting, 2);

  std::vector<int> order;
  const auto wait = [&](int job, JobQueue::Ticket* ticket) {
    EXPECT_TRUE(ticket->WaitForTurn(kNever).ok());
    order.push_back(job);  // whichever job has the only turn writes this
    ticket->EndTurn();
  };
  std::thread two(wait, 2, &*second);
  while (queue.stats().in_line < 1) std::this_thread::yield();
  std::thread three(wait, 3, &*third);
  while (queue.stats().in_line < 2) std::this_thread::yield();
  first->EndTurn();
  two.join();
  three.join();
  EXPECT_THAT(order, ::testing::ElementsAre(2, 3));
  EXPECT_EQ(queue.stats().running, 0);
}

TEST(JobQueue, RefusesWithADelayWhenFullAndAdmitsAgainAfterOneLeft) {
  JobQueue queue({1, 1});
  auto first = queue.Admit();
  {
    auto second = queue.Admit();
    ASSERT_TRUE(second.ok());
    const absl::Status full = queue.Admit().status();
    EXPECT_TRUE(absl::IsResourceExhausted(full));
    ASSERT_TRUE(RetryDelayOf(full).has_value());
    EXPECT_GE(RetryDelayOf(full)->count(), 500);
    EXPECT_LE(RetryDelayOf(full)->count(), 60000);
  }
  EXPECT_TRUE(queue.Admit().ok());
}

TEST(JobQueue, LetsAWaitingJobGo) {
  JobQueue queue({1, 5});
  auto running = queue.Admit(), cancelled = queue.Admit(), next = queue.Admit();
  ASSERT_TRUE(running->WaitForTurn(kNever).ok());
  std::stop_source stop;
  std::thread stopper([&] {
    while (queue.stats().in_line < 1) std::this_thread::yield();
    stop.request_stop();
  });
  EXPECT_TRUE(absl::IsCancelled(cancelled->WaitForTurn(stop.get_token())));
  stopper.join();
  running->EndTurn();
  EXPECT_TRUE(next->WaitForTurn(kNever).ok());  // the cancelled one does not block the line
}

TEST(JobQueue, DrainsOnceAllJobsLeft) {
  JobQueue queue({1, 5});
  auto job = std::make_unique<JobQueue::Ticket>(*queue.Admit());
  queue.StartDraining();
  EXPECT_TRUE(absl::IsUnavailable(queue.Admit().status()));
  EXPECT_FALSE(queue.WaitUntilEmpty(std::chrono::steady_clock::now()));
  std::thread leaver([&job] { job.reset(); });
  EXPECT_TRUE(queue.WaitUntilEmpty(std::chrono::steady_clock::now() + std::chrono::minutes(1)));
  leaver.join();
}

class PsfCacheTest : public ::testing::Test {
 protected:
  absl::StatusOr<PsfCache::Lease> Load(PsfCache* cache, const std::string& hash,
                                       PsfCache::Keep keep = PsfCache::Keep::kForJob) {
    return cache->GetOrLoad(
        hash, hash + ".fits", keep,
        [this]() -> absl::StatusOr<Psf> {
          ++loads_;
          return SmallPsf();
        },
        kNever);
  }
  static std::vector<std::string> Hashes(const PsfCache& cache) {
    std::vector<std::string> hashes;
    for (const auto& info : cache.List()) hashes.push_back(info.hash);
    return hashes;
  }
  const WavelengthGrid grid_{6000, 0.8, 51};
  std::atomic<int> loads_ = 0;
  std::shared_ptr<EngineControl> control_ = std::make_shared<EngineControl>();
  FakeEngine engine_{control_};
};

TEST_F(PsfCacheTest, NamesAHashThatIsNotLoaded) {
  PsfCache cache(&engine_, 1 << 20);
  const absl::Status status = cache.Get("abc").status();
  EXPECT_TRUE(absl::IsFailedPrecondition(status));
  EXPECT_THAT(std::string(status.message()), HasSubstr("\"abc\""));
}

TEST_F(PsfCacheTest, LoadsAndPreparesOnceHoweverManyAskAtOnce) {
  PsfCache cache(&engine_, 1 << 30);
  control_->Set([](auto& b) { b.prepare_gate_closed = true; });
  std::vector<std::thread> threads;
  for (int k = 0; k < 8; ++k) {
    threads.emplace_back([&] {
      auto lease = Load(&cache, "a");
      ASSERT_TRUE(lease.ok());
      EXPECT_TRUE(cache.Prepare(&*lease, grid_, 4, kNever).ok());
    });
  }
  EXPECT_TRUE(control_->WaitUntil([](const auto& seen) { return seen.at_gate == 1; }));
  control_->Set([](auto& b) { b.prepare_gate_closed = false; });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(loads_, 1);
  EXPECT_EQ(control_->seen().prepares, 1);
  const PsfCache::Stats stats = cache.stats();
  EXPECT_EQ(stats.psf_misses, 1);
  EXPECT_EQ(stats.psf_hits, 7);
  EXPECT_EQ(stats.grid_hits, 7);
  EXPECT_EQ(stats.entries, 1);
}

TEST_F(PsfCacheTest, KeepsGridsAndBundleSizesApart) {
  PsfCache cache(&engine_, 1 << 30);
  auto lease = Load(&cache, "a");
  ASSERT_TRUE(lease.ok());
  for (int size : {4, 5}) {
    for (double step : {0.8, 0.7}) ASSERT_TRUE(cache.Prepare(&*lease, {6000, step, 51}, size, kNever).ok());
  }
  EXPECT_EQ(control_->seen().prepares, 4);
  EXPECT_EQ(cache.List().at(0).prepared_grids, 4);
}

TEST_F(PsfCacheTest, EvictsTheLeastRecentlyUsedButNothingInUse) {
  PsfCache probe(&engine_, 1 << 30);
  const int64_t one = [&] {
    auto lease = Load(&probe, "x");
    return probe.stats().bytes;
  }();
  PsfCache cache(&engine_, 2 * one);
  auto held = Load(&cache, "held");
  for (const char* hash : {"a", "b"}) ASSERT_TRUE(Load(&cache, hash).ok());
  EXPECT_THAT(Hashes(cache), ::testing::ElementsAre("b", "held"));  // "a" was the oldest not in use
  EXPECT_EQ(cache.stats().evictions, 1);
  {
    auto second = Load(&cache, "c"), third = Load(&cache, "d");
    EXPECT_THAT(Hashes(cache),
                ::testing::ElementsAre("d", "c", "held"));  // over the budget while all are in use
  }
  EXPECT_LE(cache.stats().bytes, 2 * one);
  EXPECT_EQ(held->psf()->fibres, testing::kFibres);
}

TEST_F(PsfCacheTest, EvictsGridsBeforeTheModelTheyBelongTo) {
  control_->Set([](auto& b) { b.prepared_bytes = 1 << 20; });
  PsfCache cache(&engine_, (1 << 20) + (1 << 19));
  auto lease = Load(&cache, "a");
  ASSERT_TRUE(cache.Prepare(&*lease, grid_, 4, kNever).ok());
  ASSERT_TRUE(cache.Prepare(&*lease, grid_, 5, kNever).ok());
  EXPECT_EQ(cache.List().at(0).prepared_grids, 1);
  EXPECT_EQ(cache.stats().evictions, 1);
}

TEST_F(PsfCacheTest, KeepsPinnedModelsAndSaysWhenTheyLeaveNoRoom) {
  PsfCache probe(&engine_, 1 << 30);
  { ASSERT_TRUE(Load(&probe, "x").ok()); }
  PsfCache cache(&engine_, probe.stats().bytes * 3 / 2);
  ASSERT_TRUE(Load(&cache, "pinned", PsfCache::Keep::kPinned).ok());
  const absl::Status status = Load(&cache, "b", PsfCache::Keep::kLoaded).status();
  EXPECT_TRUE(absl::IsResourceExhausted(status)) << status;
  EXPECT_TRUE(Load(&cache, "c").ok());  // a job's PSF may pass through
  EXPECT_THAT(Hashes(cache), ::testing::ElementsAre("pinned"));
  EXPECT_TRUE(cache.Unload("pinned").ok());
  EXPECT_TRUE(absl::IsNotFound(cache.Unload("pinned")));
  EXPECT_TRUE(Load(&cache, "b", PsfCache::Keep::kLoaded).ok());
}

TEST_F(PsfCacheTest, ForgetsALoadThatFailedOrThrew) {
  PsfCache cache(&engine_, 1 << 20);
  const auto fail = [&](const PsfCache::Loader& load) {
    return cache.GetOrLoad("a", "a", PsfCache::Keep::kForJob, load, kNever).status();
  };
  EXPECT_TRUE(absl::IsInvalidArgument(fail([] { return absl::InvalidArgumentError("bad"); })));
  EXPECT_TRUE(absl::IsInternal(fail([]() -> absl::StatusOr<Psf> { throw std::runtime_error("x"); })));
  EXPECT_TRUE(Load(&cache, "a").ok());
}

TEST_F(PsfCacheTest, LetsAJobGoThatWaitsForAnothersLoadOrGrid) {
  PsfCache cache(&engine_, 1 << 20);
  control_->Set([](auto& b) { b.prepare_gate_closed = true; });
  auto lease = Load(&cache, "a"), other = Load(&cache, "a");
  std::thread maker([&] { EXPECT_TRUE(cache.Prepare(&*lease, grid_, 4, kNever).ok()); });
  ASSERT_TRUE(control_->WaitUntil([](const auto& seen) { return seen.at_gate == 1; }));
  std::stop_source stop;
  std::thread stopper([&] { stop.request_stop(); });
  EXPECT_TRUE(absl::IsCancelled(cache.Prepare(&*other, grid_, 4, stop.get_token()).status()));
  stopper.join();
  const auto load = [&]() -> absl::StatusOr<Psf> {
    const auto again = [] { return absl::StatusOr<Psf>(absl::InternalError("loaded twice")); };
    EXPECT_TRUE(absl::IsCancelled(
        cache.GetOrLoad("b", "b", PsfCache::Keep::kForJob, again, stop.get_token()).status()));
    return SmallPsf();
  };
  EXPECT_TRUE(cache.GetOrLoad("b", "b", PsfCache::Keep::kForJob, load, kNever).ok());
  control_->Set([](auto& b) { b.prepare_gate_closed = false; });
  maker.join();
}

TEST_F(PsfCacheTest, PreparesAGridForTheNextJobWhereTheFirstWasStopped) {
  PsfCache cache(&engine_, 1 << 20);
  control_->Set([](auto& b) { b.prepare_gate_closed = true; });
  auto lease = Load(&cache, "a"), other = Load(&cache, "a");
  std::stop_source stop;
  std::thread first(
      [&] { EXPECT_TRUE(absl::IsCancelled(cache.Prepare(&*lease, grid_, 4, stop.get_token()).status())); });
  ASSERT_TRUE(control_->WaitUntil([](const auto& seen) { return seen.at_gate == 1; }));
  std::thread second([&] { EXPECT_TRUE(cache.Prepare(&*other, grid_, 4, kNever).ok()); });
  stop.request_stop();
  first.join();
  control_->Set([](auto& b) { b.prepare_gate_closed = false; });
  second.join();
}

TEST_F(PsfCacheTest, UnloadsWhatAJobStillUses) {
  PsfCache cache(&engine_, 1 << 20);
  auto lease = Load(&cache, "a");
  EXPECT_TRUE(cache.Unload("a").ok());
  EXPECT_TRUE(cache.Prepare(&*lease, grid_, 4, kNever).ok());
  EXPECT_TRUE(absl::IsFailedPrecondition(cache.Get("a").status()));
}

TEST(StallWatchdog, CutsOffOnlyWhatWaitsTooLong) {
  StallWatchdog watchdog(std::chrono::milliseconds(20));
  Mutex mutex;
  CondVar changed;
  bool cut = false;
  StallWatchdog::Watch idle(&watchdog, [] { ADD_FAILURE() << "cut off without waiting"; });
  StallWatchdog::Watch waiting(&watchdog, [&] {
    MutexLock lock(&mutex);
    cut = true;
    changed.NotifyAll();
  });
  EXPECT_TRUE(waiting.Waiting([&] {
    MutexLock lock(&mutex);
    while (!cut) changed.Wait(&mutex);
    return true;
  }));
  EXPECT_TRUE(waiting.stalled());
  EXPECT_FALSE(idle.stalled());
}

TEST(Log, WritesOneJsonObjectALine) {
  std::ostringstream out;
  {
    Logger log(LogLevel::kInfo, MakeStreamSink(&out));
    log.Write(LogLevel::kDebug, "hidden");
    log.Info("job_ended", {{"job", "1"}, {"message", "not UTF-8: \xff, a new\nline"}});
  }
  const std::string text = out.str();
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 1);
  const auto line = nlohmann::json::parse(text);
  EXPECT_EQ(line["event"], "job_ended");
  EXPECT_EQ(line["level"], "info");
  EXPECT_EQ(line["job"], "1");
}

// A reader who looks away until told otherwise, or until the log gives up.
class SlowSink : public LogSink {
 public:
  void Write(const std::string& lines, const std::stop_token& stop) override {
    const std::stop_callback give_up(stop, [this] { LookAgain(); });
    MutexLock lock(&mutex_);
    ++calls_;
    changed_.NotifyAll();
    while (!looks_) changed_.Wait(&mutex_);
    text_ += lines;
  }
  void LookAgain() {
    MutexLock lock(&mutex_);
    looks_ = true;
    changed_.NotifyAll();
  }
  void WaitUntilCalled() {
    MutexLock lock(&mutex_);
    while (calls_ == 0) changed_.Wait(&mutex_);
  }
  std::string text() {
    MutexLock lock(&mutex_);
    return text_;
  }

 private:
  Mutex mutex_;
  CondVar changed_;
  int calls_ ABSL_GUARDED_BY(mutex_) = 0;
  bool looks_ ABSL_GUARDED_BY(mutex_) = false;
  std::string text_ ABSL_GUARDED_BY(mutex_);
};

TEST(Log, DropsAndCountsWhatNobodyReadsInTime) {
  auto owned = std::make_unique<SlowSink>();
  SlowSink* const sink = owned.get();
  Logger log(LogLevel::kInfo, std::move(owned), 300);
  log.Info("first");
  sink->WaitUntilCalled();
  for (int i = 0; i < 100; ++i) log.Info("queued", {{"number", i}});
  EXPECT_GT(log.dropped(), 90);
  EXPECT_LT(log.dropped(), 100);
  sink->LookAgain();
  log.Flush();
  const int64_t dropped = log.dropped();
  log.Info("last");
  log.Flush();
  EXPECT_EQ(log.dropped(), dropped);
  std::istringstream lines(sink->text());
  std::vector<std::string> events;
  int64_t told = 0;
  for (std::string line; std::getline(lines, line);) {
    const auto parsed = nlohmann::json::parse(line);
    events.push_back(parsed["event"]);
    if (parsed.contains("lines")) told += parsed["lines"].get<int64_t>();
  }
  EXPECT_EQ(events.front(), "first");
  EXPECT_EQ(events.back(), "last");
  EXPECT_EQ(told, dropped);
}

TEST(Log, EndsThoughNobodyReads) {
  auto owned = std::make_unique<SlowSink>();
  SlowSink* const sink = owned.get();
  Logger log(LogLevel::kInfo, std::move(owned));
  log.Info("unread");
  sink->WaitUntilCalled();
}

TEST(Log, FindsTheTraceId) {
  EXPECT_EQ(TraceIdOf("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"),
            "0af7651916cd43dd8448eb211c80319c");
  EXPECT_EQ(TraceIdOf("00-0AF7-b7ad6b7169203331-01"), "");
  EXPECT_EQ(TraceIdOf(""), "");
}

ParsedCommandLine Parse(std::vector<const char*> arguments) {
  arguments.insert(arguments.begin(), "spexd");
  return ParseCommandLine(static_cast<int>(arguments.size()), arguments.data());
}

TEST(Options, AreReadFromTheCommandLine) {
  const auto parsed =
      Parse({"--listen", "unix:/tmp/s", "--http", "none", "--allow-root", "/", "--allow-root", "/tmp",
             "--max-running-jobs", "3", "--psf-cache-bytes", "2GiB", "--log-level", "error"});
  ASSERT_FALSE(parsed.exit_code.has_value()) << parsed.text;
  EXPECT_EQ(parsed.options.allow_roots.size(), 2u);
  EXPECT_EQ(parsed.options.max_running_jobs, 3);
  EXPECT_EQ(parsed.options.psf_cache_bytes, int64_t{2} << 30);
  EXPECT_EQ(parsed.options.log_level, LogLevel::kError);
  EXPECT_EQ(Parse({"--version"}).exit_code, 0);
  EXPECT_THAT(Parse({"--help"}).text, HasSubstr("--allow-root"));
}

TEST(Options, NameTheFlagTheValueAndTheLimit) {
  const std::vector<std::vector<const char*>> wrong = {{"--listen", "0.0.0.0:1"},
                                                       {"--listen", "localhost"},
                                                       {"--listen", "127.0.0.1:99999"},
                                                       {"--listen", "unix:"},
                                                       {"--http", "[::]:80"},
                                                       {"--http", "::1:80"},
                                                       {"--allow-root", "/no/such"},
                                                       {"--threads", "-1"},
                                                       {"--max-running-jobs", "-1"},
                                                       {"--max-queued-jobs", "-1"},
                                                       {"--max-upload-bytes", "0"},
                                                       {"--psf-cache-bytes", "-5"},
                                                       {"--grace-seconds", "nan"},
                                                       {"--stall-seconds", "0"},
                                                       {"--device", "tpu"},
                                                       {"--devices", "0,0"},
                                                       {"--device-memory-bytes", "-1"},
                                                       {"--jobs-per-device", "0"},
                                                       {"--log-level", "loud"},
                                                       {"--max-workspace-bytes", "lots"},
                                                       {"--max-result-bytes", "1e30"},
                                                       {"--max-upload-total-bytes", "0"}};
  for (const auto& arguments : wrong) {
    const auto parsed = Parse(arguments);
    EXPECT_EQ(parsed.exit_code, 2) << arguments[0] << " " << arguments[1];
    EXPECT_THAT(parsed.text, HasSubstr(arguments[0])) << arguments[1];
  }
  EXPECT_EQ(Parse({"--no-such-flag"}).exit_code, 2);
  const auto both = Parse({"--device", "cpu", "--devices", "0"});
  EXPECT_EQ(both.exit_code, 2);
  EXPECT_THAT(both.text, HasSubstr("--devices"));
  EXPECT_FALSE(Parse({"--listen", "0.0.0.0:1", "--insecure-any-address"}).exit_code.has_value());
  EXPECT_FALSE(Parse({"--listen", "[::1]:0", "--http", "localhost:0"}).exit_code.has_value());
}

TEST(Options, ChooseTheEngineAndItsDevices) {
  const auto parsed = Parse({"--device", "cuda", "--devices", "2,0", "--device-memory-bytes", "8GiB",
                             "--jobs-per-device", "6", "--threads", "3"});
  ASSERT_FALSE(parsed.exit_code.has_value()) << parsed.text;
  const EngineChoice& engine = parsed.options.engine;
  EXPECT_EQ(engine.device, "cuda");
  EXPECT_THAT(engine.devices, ::testing::ElementsAre(2, 0));
  EXPECT_EQ(engine.device_memory_bytes, int64_t{8} << 30);
  EXPECT_EQ(engine.jobs_per_device, 6);
  EXPECT_EQ(engine.threads, 3);
  EXPECT_EQ(Parse({}).options.engine.device, "auto");
}

TEST(Options, FollowTheEngineWhereTheySayNothing) {
  constexpr int64_t kGiB = int64_t{1} << 30;
  const auto control = std::make_shared<EngineControl>();
  const FakeEngine engine(control);
  const auto resolved = [&](const EngineInfo& info, int devices, const ServerOptions& options) {
    control->Set([&](auto& b) {
      b.info = info;
      b.devices.assign(devices, {});
      for (DeviceStatus& device : b.devices) device.memory_bytes = 100 * kGiB;
    });
    return WithDefaultsFor(engine, options);
  };
  EXPECT_EQ(resolved({"cpu", "", 16, 0}, 0, {}).max_running_jobs, 2);
  EXPECT_EQ(resolved({"cpu", "", 16, 0}, 0, {}).psf_cache_bytes, kGiB);
  EXPECT_EQ(resolved({"cuda", "", 8, 0}, 2, {}).max_running_jobs, 16);
  EXPECT_EQ(resolved({"cuda", "", 8, 0}, 2, {}).psf_cache_bytes, 201 * kGiB);
  EXPECT_EQ(resolved({"cuda", "", 1000, 0}, 2, {}).max_running_jobs, 256);
  ServerOptions told;
  told.max_running_jobs = 3;
  told.psf_cache_bytes = 5;
  EXPECT_EQ(resolved({"cuda", "", 8, 0}, 2, told).max_running_jobs, 3);
  EXPECT_EQ(resolved({"cuda", "", 8, 0}, 2, told).psf_cache_bytes, 5);
}

TEST(Convert, RefusesFieldsThatAreOutOfRange) {
  const auto refused = [](const std::function<void(v1::JobHeader*)>& change, const char* field) {
    v1::JobHeader header;
    change(&header);
    const absl::Status status = ToJobSpec(header).status();
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << field;
    EXPECT_THAT(std::string(status.message()), HasSubstr(field));
  };
  refused([](auto* h) { h->set_first_fibre(4000000000u); }, "first_fibre");
  refused([](auto* h) { h->set_fibre_count(0); }, "fibre_count");
  refused([](auto* h) { h->set_bundle_size(0); }, "bundle_size");
  refused([](auto* h) { h->set_psferr(-1); }, "psferr");
  refused([](auto* h) { h->set_regularize(std::nan("")); }, "regularize");
  refused([](auto* h) { h->mutable_grid()->set_first(1); }, "grid");
  refused(
      [](auto* h) {
        h->mutable_grid()->set_first(6000);
        h->mutable_grid()->set_step(0.1);
        h->mutable_grid()->set_count(10000000);
      },
      "grid.count is 10000000");
}

TEST(Convert, RefusesStringsThatAreTooLong) {
  const auto refused = [](const std::function<void(v1::JobHeader*, std::string)>& change, const char* field) {
    v1::JobHeader header;
    change(&header, std::string(kMostStringBytes, 'x'));
    EXPECT_TRUE(ToJobSpec(header).ok()) << field;
    change(&header, std::string(kMostStringBytes + 1, 'x'));
    EXPECT_THAT(std::string(ToJobSpec(header).status().message()),
                HasSubstr(absl::StrCat(field, " has 1025 bytes, must be at most 1024")));
  };
  refused([](auto* h, auto text) { h->mutable_image()->set_path(text); }, "image.path");
  refused([](auto* h, auto text) { h->mutable_psf()->set_psf_hash(text); }, "psf.psf_hash");
  refused([](auto* h, auto text) { h->mutable_psf()->mutable_upload()->set_name(text); }, "psf.upload.name");
  refused([](auto* h, auto text) { h->mutable_image()->mutable_raw()->set_name(text); }, "image.raw.name");
}

TEST(Convert, CutsLargeBundlesModelsAndHeadersIntoMessagesUnderTheLimit) {
  constexpr int kBins = 9000;
  BundleSpectra bundle;
  bundle.fibres = {50, 25};
  bundle.spectra.flux.Assign({25, kBins}, 1);
  bundle.spectra.ivar.Assign({25, kBins}, 2);
  bundle.spectra.mask.Assign({25, kBins}, 3);
  bundle.spectra.resolution.Assign({25, kResolutionDiagonals, kBins}, 4);
  bundle.spectra.chi2pix.Assign({25, kBins}, 5);
  bundle.model.pixels.Assign({4000, 300}, 1);
  JobPlan plan;
  plan.origin.image_cards.assign(60000, std::string(80, 'x'));
  plan.origin.fibermap = RawTable{{std::string(80, 'y')}, 500, 20000, std::string(10000000, 'z')};
  int fibres = 0, rows = 0, cards = 0, lasts = 0;
  size_t table = 0, largest = 0;
  const EventWriter write = [&](const v1::ExtractEvent& event) {
    largest = std::max(largest, event.ByteSizeLong());
    fibres += event.bundle().fibre_count();
    rows += event.model().row_count();
    cards += event.frame_info().image_cards_size();
    table += event.frame_info().fibermap_data().size();
    lasts += event.bundle().last() + event.frame_info().last();
    return true;
  };
  EXPECT_TRUE(WriteFrameInfo(plan, 0, 0, write));
  EXPECT_TRUE(WriteBundle(bundle, kBins, write));
  EXPECT_EQ(fibres, 25);
  EXPECT_EQ(rows, 4000);
  EXPECT_EQ(cards, 60000);
  EXPECT_EQ(table, 10000000u);
  EXPECT_EQ(lasts, 2);
  EXPECT_LT(largest, size_t{4} << 20);
}

TEST(Convert, CutsLongSummaries) {
  JobReport report;
  for (int64_t k = 0; k < 400000; ++k) report.summary.bad2dfit.push_back((int64_t{1} << 40) + k);
  report.summary.failed_bundles.assign(20000, std::string(2000, 'f'));
  int indices = 0, lasts = 0;
  EXPECT_TRUE(WriteSummary(report, [&](const v1::ExtractEvent& event) {
    EXPECT_LT(event.ByteSizeLong(), size_t{4} << 20);
    indices += event.summary().bad2dfit_size();
    lasts += event.summary().last();
    return true;
  }));
  EXPECT_EQ(indices, 400000);
  EXPECT_EQ(lasts, 1);
}

TEST(SharedThreads, AreDividedAmongThoseWhoWork) {
  SharedThreads threads(16);
  const SharedThreads::Share alone(&threads);
  EXPECT_EQ(alone.threads(), 16);
  {
    const SharedThreads::Share second(&threads), third(&threads);
    EXPECT_EQ(second.threads(), 8);
    EXPECT_EQ(third.threads(), 5);
  }
  EXPECT_EQ(SharedThreads::Share(&threads).threads(), 8);
}

TEST(SharedThreads, AreAtLeastOne) {
  SharedThreads threads(1);
  const SharedThreads::Share first(&threads), second(&threads);
  EXPECT_EQ(second.threads(), 1);
}

}  // namespace
}  // namespace spexd
