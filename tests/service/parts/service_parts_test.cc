// The server's parts on their own, without gRPC and without the work of an engine.
#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <future>
#include <list>
#include <numeric>
#include <set>
#include <sstream>
#include <thread>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "core/base/digest/crc32c.h"
#include "core/base/digest/sha256.h"
#include "core/base/text.h"
#include "core/fits/readers.h"
#include "core/frame/job_options.h"
#include "nlohmann/json.hpp"
#include "proto/job_header.h"
#include "proto/product_part.h"
#include "server/admission/byte_budget.h"
#include "server/admission/job_queue.h"
#include "server/admission/path_policy.h"
#include "server/admission/reading_memory.h"
#include "server/admission/stream_limits.h"
#include "server/admission/string_limits.h"
#include "server/admission/warm_cache.h"
#include "server/base/event_thread.h"
#include "server/base/log.h"
#include "server/base/retry.h"
#include "server/base/shared_threads.h"
#include "server/base/stall_watchdog.h"
#include "server/base/task_threads.h"
#include "server/config/options.h"
#include "server/jobs/job_bounds.h"
#include "server/jobs/job_mailbox.h"
#include "server/messages/convert.h"
#include "server/messages/event_messages.h"
#include "server/messages/received_request.h"
#include "server/messages/upload.h"
#include "tests/fits/psf/psf_samples.h"
#include "tests/service/support/fake_engine.h"
#include "tests/service/support/inputs.h"
#include "tests/support/matchers.h"

namespace spexd::testing {
namespace {

const std::stop_token kNever;

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

// Returns a message as gRPC receives it, in slices of `size` bytes.
grpc::ByteBuffer InSlices(const std::string& bytes, size_t size) {
  std::vector<grpc::Slice> slices;
  for (size_t at = 0; at < bytes.size(); at += size) slices.emplace_back(bytes.substr(at, size));
  return grpc::ByteBuffer(slices.data(), slices.size());
}

std::string PayloadOf(const ReceivedRequest<v1::ExtractRequest>& request) { return absl::StrJoin(request.payload(), ""); }

TEST(ReceivedRequest, FindsTheFieldsAndThePayloadOfAChunkInSlices) {
  v1::ExtractRequest message;
  message.mutable_chunk()->set_input(v1::INPUT_FIBERMAP);
  message.mutable_chunk()->set_offset(uint64_t{1} << 40);
  message.mutable_chunk()->set_payload(std::string(1000, 'p'));
  for (const size_t size : {1, 7, 500, 2000}) {
    ReceivedRequest<v1::ExtractRequest> request;
    *request.buffer() = InSlices(message.SerializeAsString(), size);
    ASSERT_TRUE(request.Parse().ok());
    EXPECT_EQ(request.message().chunk().input(), v1::INPUT_FIBERMAP);
    EXPECT_EQ(request.message().chunk().offset(), uint64_t{1} << 40);
    EXPECT_EQ(PayloadOf(request), message.chunk().payload());
  }
}

TEST(ReceivedRequest, ReadsWhatProtobufReadsAndRefusesTheRest) {
  v1::ExtractRequest chunk, end;
  chunk.mutable_chunk()->set_offset(300);
  chunk.mutable_chunk()->set_payload("0123456789");
  end.mutable_end()->set_sha256("abc");
  const std::string bytes = chunk.SerializeAsString();
  // Complete messages, two messages as one, and cut and damaged ones.
  std::vector<std::string> all = {"", bytes, end.SerializeAsString(), bytes + end.SerializeAsString(),
                                  bytes + bytes};
  for (size_t k = 0; k < bytes.size(); ++k) {
    all.push_back(bytes.substr(0, k));
    for (int bit = 0; bit < 8; ++bit) {
      all.push_back(bytes);
      all.back()[k] = static_cast<char>(all.back()[k] ^ 1 << bit);
    }
  }
  for (const std::string& each : all) {
    ReceivedRequest<v1::ExtractRequest> request;
    *request.buffer() = InSlices(each, 3);
    v1::ExtractRequest expected;
    const bool good = expected.ParseFromString(each);
    ASSERT_EQ(request.Parse().ok(), good) << absl::CHexEscape(each);
    if (!good) continue;
    EXPECT_EQ(request.message().message_case(), expected.message_case()) << absl::CHexEscape(each);
    EXPECT_EQ(request.message().chunk().input(), expected.chunk().input()) << absl::CHexEscape(each);
    EXPECT_EQ(request.message().chunk().offset(), expected.chunk().offset()) << absl::CHexEscape(each);
    EXPECT_EQ(PayloadOf(request), expected.chunk().payload()) << absl::CHexEscape(each);
    EXPECT_EQ(request.message().end().sha256(), expected.end().sha256()) << absl::CHexEscape(each);
  }
}

TEST(ByteBudget, GivesItsBytesToThoseWhoWaitInTheirOrder) {
  ByteBudget budget("decoded inputs", 100);
  auto held = budget.Reserve(60);
  ASSERT_TRUE(held.ok());
  std::vector<int> order;
  std::jthread large([&] {
    const auto mine = budget.WaitFor(100, kNever);
    EXPECT_TRUE(mine.ok());
    order.push_back(100);
  });
  // A reservation is refused as soon as somebody waits, even if the bytes are free.
  while (budget.Reserve(1).ok()) std::this_thread::yield();
  std::jthread small([&] {
    const auto mine = budget.WaitFor(10, kNever);
    EXPECT_TRUE(mine.ok());
    order.push_back(10);
  });
  held->Release();
  large.join();
  small.join();
  EXPECT_THAT(order, ElementsAre(100, 10));
  EXPECT_EQ(budget.used(), 0);
}

TEST(ByteBudget, EndsAWaitWhenAStopIsRequested) {
  ByteBudget budget("decoded inputs", 100);
  const auto held = budget.Reserve(60);
  std::stop_source stop;
  std::jthread canceller([&] {
    while (budget.Reserve(1).ok()) std::this_thread::yield();
    stop.request_stop();
  });
  EXPECT_TRUE(absl::IsCancelled(budget.WaitFor(50, stop.get_token()).status()));
  EXPECT_TRUE(absl::IsResourceExhausted(budget.WaitFor(101, kNever).status()));
  EXPECT_EQ(budget.used(), 60);
}

TEST(ByteBudget, LetsAReservationGrow) {
  ByteBudget budget("files being read", 100);
  auto held = budget.Reserve(60);
  ASSERT_TRUE(held.ok());
  EXPECT_TRUE(held->Grow(30).ok());
  EXPECT_EQ(budget.used(), 90);
  EXPECT_THAT(std::string(held->Grow(20).message()), HasSubstr("needs 110 bytes, the server's limit is 100"));
  held->Release();
  EXPECT_EQ(budget.used(), 0);
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

class SharedBudgetTest : public ::testing::Test {
 protected:
  // Reserves bytes for the identity; returns why not if it fails.
  absl::Status Reserve(const std::string& identity, int64_t bytes) {
    auto held = budget_.Reserve(bytes, {identity, [this, identity] { taken_back_.push_back(identity); }});
    if (held.ok()) held_.push_back(*std::move(held));
    return held.status();
  }
  // Reserves bytes for an upload that is waited for.
  ByteBudget::Reservation* Upload(const std::string& identity, int64_t bytes) {
    EXPECT_TRUE(Reserve(identity, bytes).ok());
    EXPECT_TRUE(held_.back().WaitForUpload().ok());
    return &held_.back();
  }

  ByteBudget::Time now_;
  ByteBudget budget_{"uploads in flight", 1000, 700, [this] { return now_; }};
  std::vector<std::string> taken_back_;
  std::list<ByteBudget::Reservation> held_;
};

TEST_F(SharedBudgetTest, AnIdentityHoldsNoMoreThanItLeavesFree) {
  EXPECT_TRUE(Reserve("bob", 300).ok());
  EXPECT_TRUE(Reserve("bob", 200).ok());
  const absl::Status third = Reserve("bob", 1);
  EXPECT_EQ(ReasonOf(third), "identity_share");
  EXPECT_TRUE(RetryDelayOf(third).has_value());
  EXPECT_THAT(
      std::string(third.message()),
      HasSubstr("\"bob\" holds 500 bytes and needs 1 more, which leaves 499 of the server's 1000 free"));
  EXPECT_TRUE(Reserve("carol", 250).ok());
  EXPECT_FALSE(Reserve("carol", 1).ok());
  EXPECT_TRUE(Reserve("alice", 100).ok()) << "some remains for others";
  EXPECT_TRUE(Reserve("bob", 0).ok());
  held_.clear();
  EXPECT_TRUE(Reserve("bob", 500).ok());
}

TEST_F(SharedBudgetTest, AnIdentityThatHoldsNothingMayUploadItsLargestInput) {
  const absl::Status never = Reserve("bob", 701);
  EXPECT_THAT(std::string(never.message()),
              HasSubstr("the server's limit is 700 for one identity and 1000 in all"));
  EXPECT_FALSE(RetryDelayOf(never).has_value());
  EXPECT_TRUE(Reserve("alice", 100).ok());
  EXPECT_TRUE(Reserve("bob", 700).ok());
  EXPECT_EQ(ReasonOf(Reserve("bob", 1)), "identity_share");
}

TEST_F(SharedBudgetTest, TakesBackFromUploadsThatAreSlowAsFarAsOthersNeedIt) {
  ByteBudget::Reservation* const idle = Upload("bob", 300);
  ByteBudget::Reservation* const newer = Upload("bob", 200);
  Upload("carol", 250);
  EXPECT_FALSE(Reserve("alice", 300).ok()) << "no upload is slow yet";
  now_ += ByteBudget::kSlowTime;
  EXPECT_TRUE(Reserve("alice", 100).ok()) << "needs nothing of others";
  EXPECT_TRUE(taken_back_.empty());
  EXPECT_TRUE(Reserve("alice", 100).ok());
  EXPECT_THAT(taken_back_, ElementsAre("bob"));
  EXPECT_TRUE(newer->EndWait().ok());
  const absl::Status ended = idle->EndWait();
  EXPECT_EQ(ReasonOf(ended), "slow_upload");
  EXPECT_TRUE(RetryDelayOf(ended).has_value());
  EXPECT_EQ(budget_.used(), 650);
  held_.clear();
  EXPECT_EQ(budget_.used(), 0);
}

TEST_F(SharedBudgetTest, TakesNothingBackFromUploadsThatComeNorFromThoseThatAreComplete) {
  ByteBudget::Reservation* const coming = Upload("bob", 200);
  ByteBudget::Reservation* const trickle = Upload("bob", 200);
  ByteBudget::Reservation* const complete = Upload("bob", 100);
  EXPECT_TRUE(complete->EndWait().ok());
  for (int second = 0; second < 60; ++second) {
    now_ += std::chrono::seconds(1);
    coming->Came(ByteBudget::kSlowBytes / 4);
    trickle->Came(1);
  }
  EXPECT_TRUE(Reserve("alice", 300).ok());
  EXPECT_FALSE(trickle->WaitForUpload().ok());
  EXPECT_FALSE(Reserve("alice", 150).ok());
  EXPECT_TRUE(coming->WaitForUpload().ok());
  EXPECT_TRUE(complete->WaitForUpload().ok());
  EXPECT_THAT(taken_back_, ElementsAre("bob"));
}

TEST_F(SharedBudgetTest, TakesNothingBackForWhatWouldNotFitAllTheSame) {
  ByteBudget::Reservation* const slow = Upload("bob", 200);
  EXPECT_TRUE(Reserve("carol", 400).ok());
  now_ += ByteBudget::kSlowTime;
  EXPECT_FALSE(Reserve("alice", 650).ok());
  EXPECT_TRUE(slow->WaitForUpload().ok());
  EXPECT_EQ(budget_.used(), 600);
  EXPECT_TRUE(taken_back_.empty());
}

TEST(ReadingMemoryTest, ReservesWhatReadersTakeBeyondWhatTheyMay) {
  ByteBudget budget("files being read", 100);
  ReadingMemory memory(*budget.Reserve(40), 40);
  EXPECT_TRUE(memory.Take(30).ok());
  EXPECT_EQ(budget.used(), 40);
  EXPECT_TRUE(memory.Take(30).ok());
  EXPECT_EQ(budget.used(), 60);
  EXPECT_TRUE(absl::IsResourceExhausted(memory.Take(41)));
  memory.GiveBack(30);
  memory.Allow(20);
  EXPECT_TRUE(memory.Take(50).ok());
  EXPECT_EQ(budget.used(), 60);
}

TEST(ReadingMemoryTest, GivesReadersOnlyWhatIsAllowedOnceItIsReleased) {
  ByteBudget budget("files being read", 100);
  ReadingMemory memory(*budget.Reserve(40), 40);
  EXPECT_TRUE(memory.Take(40).ok());
  memory.Release();
  EXPECT_EQ(budget.used(), 0);
  memory.GiveBack(40);  // for a file that is kept longer
  EXPECT_FALSE(memory.Take(1).ok());
  memory.Allow(10);
  EXPECT_TRUE(memory.Take(10).ok());
  EXPECT_FALSE(memory.Take(1).ok());
}

TEST_F(SharedBudgetTest, WhoExceedsItsOwnPartTakesBackOnlyFromItself) {
  ByteBudget::Reservation* const slow = Upload("alice", 100);
  EXPECT_TRUE(Reserve("bob", 400).ok());
  now_ += ByteBudget::kSlowTime;
  EXPECT_EQ(ReasonOf(Reserve("bob", 200)), "identity_share");
  EXPECT_TRUE(slow->WaitForUpload().ok());
  Upload("carol", 150);
  now_ += ByteBudget::kSlowTime;
  EXPECT_TRUE(Reserve("carol", 130).ok());
  EXPECT_THAT(taken_back_, ElementsAre("alice"));
  EXPECT_TRUE(budget_.TakeBackFromSlow());
  EXPECT_FALSE(budget_.TakeBackFromSlow());
  EXPECT_THAT(taken_back_, ElementsAre("alice", "carol"));
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
    auto file = policy->Open(path, limit);
    if (!file.ok()) return file.status();
    return file->Read();
  }
  TempFolder folder_;
};

TEST_F(PathPolicyTest, ReadsAFileUnderARoot) {
  const auto bytes = Read(folder_ / "root/below/frame.fits");
  ASSERT_TRUE(bytes.ok()) << bytes.status();
  EXPECT_EQ(*bytes, "frame");
  EXPECT_TRUE(Read(folder_ / "root/below/../below/./frame.fits").ok());
}

TEST_F(PathPolicyTest, ReadsNothingOnceAStopIsRequested) {
  std::stop_source stop;
  stop.request_stop();
  auto file = PathPolicy::Make({folder_ / "root"})->Open(folder_ / "root/below/frame.fits", 1000);
  EXPECT_TRUE(absl::IsCancelled(file->Read(stop.get_token()).status()));
}

TEST_F(PathPolicyTest, DeniesWhatLiesOutsideWhetherItExistsOrNot) {
  const absl::Status there = Read(folder_ / "secret").status();
  const absl::Status missing = Read(folder_ / "missing").status();
  EXPECT_TRUE(absl::IsPermissionDenied(there)) << there;
  EXPECT_TRUE(absl::IsPermissionDenied(missing)) << missing;
  EXPECT_TRUE(
      absl::IsPermissionDenied(Read(folder_ / "root2/frame.fits").status()));  // a prefix, but not a parent
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
  EXPECT_TRUE(Read(folder_ / "into.fits").ok());  // only the location of the file matters
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

TEST_F(PathPolicyTest, RefusesUrlsAndWhatIsNoFile) {
  for (const std::string& path :
       {std::string("http://example.org/x.fits"), "file://" + (folder_ / "root/below/frame.fits"),
        std::string("frame.fits"), std::string(),
        (folder_ / "root/below/frame.fits") + std::string(1, '\0') + ".fits", folder_ / "root/below",
        "/" + std::string(5000, 'x')}) {
    EXPECT_TRUE(absl::IsInvalidArgument(Read(path).status())) << path << ": " << Read(path).status();
  }
}

TEST_F(PathPolicyTest, TakesEveryCharacterOfANameAsItIs) {
  // CFITSIO would interpret the first as an HDU of frame.fits, and the second as a copy to be made.
  for (const char* const name : {"frame.fits[1]", "frame.fits(copy)", "frame (1).fits", "a|b{c}.fits"}) {
    const std::string path = (folder_ / "root/below/") + name;
    EXPECT_TRUE(absl::IsNotFound(Read(path).status())) << path << ": " << Read(path).status();
    WriteText(path, name);
    EXPECT_EQ(Read(path).value(), name);
  }
  EXPECT_FALSE(std::filesystem::exists("copy"));
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

TEST(JobBounds, RefuseByItsEstimateOnlyAJobThatHasTimeLeft) {
  const std::chrono::steady_clock::time_point deadline{std::chrono::seconds(1000)};
  const JobBounds bounds({}, 100, deadline - std::chrono::seconds(100), nullptr);
  const auto ten_seconds_before = deadline - std::chrono::seconds(10);
  EXPECT_TRUE(CheckTimeLeft(bounds, 7, 3, ten_seconds_before).ok());
  EXPECT_EQ(CheckTimeLeft(bounds, 7, 4, ten_seconds_before),
            absl::DeadlineExceededError(
                "the job is estimated to take 7 seconds and 4 for its products, 10 are left "
                "(--max-job-seconds 100)"));
  EXPECT_EQ(CheckTimeLeft(bounds, 20, 0, ten_seconds_before),
            absl::DeadlineExceededError(
                "the job is estimated to take 20 seconds, 10 are left (--max-job-seconds 100)"));
  for (const auto late : {std::chrono::microseconds(0), std::chrono::microseconds(224)}) {
    for (const double seconds : {0.0, 20.0}) {
      EXPECT_EQ(CheckTimeLeft(bounds, seconds, 0, deadline + late),
                absl::DeadlineExceededError("the job took 100 seconds, the limit of --max-job-seconds"));
    }
  }
}

TEST(JobQueue, RefusesWithADelayWhenFullAndAdmitsAgainAfterOneLeft) {
  JobQueue queue({1, 1});
  auto first = queue.Admit({});
  {
    auto second = queue.Admit({});
    ASSERT_TRUE(second.ok());
    const absl::Status full = queue.Admit({}).status();
    EXPECT_TRUE(absl::IsResourceExhausted(full));
    ASSERT_TRUE(RetryDelayOf(full).has_value());
    EXPECT_GE(RetryDelayOf(full)->count(), 500);
    EXPECT_LE(RetryDelayOf(full)->count(), 60000);
  }
  EXPECT_TRUE(queue.Admit({}).ok());
}

TEST(JobQueue, LetsAWaitingJobGo) {
  JobQueue queue({1, 5});
  auto running = queue.Admit({}), next = queue.Admit({});
  bool granted = false;
  running->Join([] {});
  {
    auto gone = queue.Admit({});
    gone->Join([] { ADD_FAILURE() << "a slot for a job that left"; });
    next->Join([&granted] { granted = true; });
  }
  EXPECT_EQ(queue.stats().queued, 1);
  running->ReleaseSlot();
  EXPECT_TRUE(granted);  // the job that left does not block the queue
}

TEST(JobQueue, GivesTheSlotOfAJobThatVanishesToTheNext) {
  JobQueue queue({1, 5});
  auto next = queue.Admit({});
  bool granted = false;
  {
    auto running = queue.Admit({});
    running->Join([] {});
    next->Join([&granted] { granted = true; });
    EXPECT_FALSE(granted);
  }
  EXPECT_TRUE(granted);
}

TEST(JobQueue, DrainsOnceAllJobsLeft) {
  JobQueue queue({1, 5});
  auto job = std::make_unique<JobQueue::Ticket>(*queue.Admit({}));
  queue.StartDraining();
  EXPECT_TRUE(absl::IsUnavailable(queue.Admit({}).status()));
  EXPECT_FALSE(queue.WaitUntilEmpty(std::chrono::steady_clock::now()));
  std::thread leaver([&job] { job.reset(); });
  EXPECT_TRUE(queue.WaitUntilEmpty(std::chrono::steady_clock::now() + std::chrono::minutes(1)));
  leaver.join();
}

TEST(EventThread, RunsStepsInTheOrderOfPostingAndOnceIfPostedAgainBefore) {
  std::vector<int> order;
  std::promise<void> open;
  {
    EventThread thread;
    const auto hold = std::make_shared<EventThread::Step>([&] { open.get_future().wait(); });
    const auto first = std::make_shared<EventThread::Step>([&] { order.push_back(1); });
    const auto second = std::make_shared<EventThread::Step>([&] { order.push_back(2); });
    thread.Post(hold);
    for (const auto& step : {second, first, second}) thread.Post(step);
    open.set_value();
  }
  EXPECT_THAT(order, ElementsAre(2, 1));
}

TEST(EventThread, RunsAStepThatPostsItself) {
  int runs = 0;
  {
    std::shared_ptr<EventThread::Step> step;
    EventThread thread;  // ends before `step` does
    step = std::make_shared<EventThread::Step>([&] {
      if (++runs < 3) thread.Post(step);
    });
    thread.Post(step);
  }
  EXPECT_EQ(runs, 3);
}

TEST(JobMailbox, WakesOnceForWhatCameAfterNothing) {
  int wakes = 0;
  JobMailbox mailbox([&wakes] { ++wakes; });
  JobEvent event;
  mailbox.Push(StateEvent{"reading"});
  EXPECT_EQ(wakes, 0);  // nobody has looked yet
  EXPECT_EQ(mailbox.Next(&event), JobMailbox::Got::kEvent);
  EXPECT_EQ(mailbox.Next(&event), JobMailbox::Got::kNothing);
  mailbox.Push(StateEvent{"preparing"});
  mailbox.Push(StateEvent{"extracting"});
  mailbox.Close();
  EXPECT_EQ(wakes, 1);
  EXPECT_EQ(mailbox.Next(&event), JobMailbox::Got::kEvent);
  EXPECT_EQ(mailbox.Next(&event), JobMailbox::Got::kEvent);
  EXPECT_EQ(mailbox.Next(&event), JobMailbox::Got::kEnd);
}

TEST(JobMailbox, MayBeDestroyedByWhomItWakes) {
  std::unique_ptr<JobMailbox> mailbox;
  bool ended = false;
  mailbox = std::make_unique<JobMailbox>([&] {
    JobEvent event;
    ended = mailbox->Next(&event) == JobMailbox::Got::kEnd;
    mailbox.reset();
  });
  JobEvent event;
  EXPECT_EQ(mailbox->Next(&event), JobMailbox::Got::kNothing);
  mailbox->Close();
  EXPECT_TRUE(ended);
}

const Identity kOwner{"owner", {.submit = true}};
const Identity kOther{"other", {.submit = true}};
const Identity kAdministrator{"administrator", Roles::All()};

class WarmCacheTest : public ::testing::Test {
 protected:
  absl::StatusOr<WarmCache::Lease> Load(WarmCache* cache, const std::string& hash,
                                        const WarmCache::Keep& keep = {}) {
    return cache->GetOrLoad(
        hash, hash + ".fits", keep,
        [this]() -> absl::StatusOr<Psf> {
          ++loads_;
          return SmallPsf();
        },
        kNever);
  }
  static std::vector<std::string> Hashes(const WarmCache& cache) {
    std::vector<std::string> hashes;
    for (const auto& info : cache.List()) hashes.push_back(info.hash);
    return hashes;
  }
  const WavelengthGrid grid_{6000, 0.8, 51};
  std::atomic<int> loads_ = 0;
  std::shared_ptr<EngineControl> control_ = std::make_shared<EngineControl>();
  FakeEngine engine_{control_};
};

TEST_F(WarmCacheTest, NamesAHashThatIsNotLoaded) {
  WarmCache cache(&engine_, 1 << 20);
  const absl::Status status = cache.Get("abc").status();
  EXPECT_TRUE(absl::IsFailedPrecondition(status));
  EXPECT_THAT(std::string(status.message()), HasSubstr("\"abc\""));
}

TEST_F(WarmCacheTest, LoadsAndPreparesOnceHoweverManyAskAtOnce) {
  WarmCache cache(&engine_, 1 << 30);
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
  const WarmCache::Stats stats = cache.stats();
  EXPECT_EQ(stats.of(WarmKind::kPsf).misses, 1);
  EXPECT_EQ(stats.of(WarmKind::kPsf).hits, 7);
  EXPECT_EQ(stats.grid.hits, 7);
  EXPECT_EQ(stats.entries, 1);
}

TEST_F(WarmCacheTest, KeepsGridsAndBundleSizesApart) {
  WarmCache cache(&engine_, 1 << 30);
  auto lease = Load(&cache, "a");
  ASSERT_TRUE(lease.ok());
  for (int size : {4, 5}) {
    for (double step : {0.8, 0.7}) ASSERT_TRUE(cache.Prepare(&*lease, {6000, step, 51}, size, kNever).ok());
  }
  EXPECT_EQ(control_->seen().prepares, 4);
  EXPECT_EQ(cache.List().at(0).prepared_grids, 4);
}

TEST_F(WarmCacheTest, KeepsPsfsOfEveryModelAndCountsTheirTables) {
  WarmCache cache(&engine_, 1 << 30);
  for (const NamedFile& file : PsfFiles()) {
    SCOPED_TRACE(file.type);
    const int64_t before = cache.stats().bytes;
    for (int k = 0; k < 2; ++k) {
      const auto lease = cache.GetOrLoad(
          file.type, file.type, {},
          [&]() -> absl::StatusOr<Psf> {
            ++loads_;
            return ReadPsf(Source::FromBytes(file.type, file.bytes).value());
          },
          kNever);
      ASSERT_TRUE(lease.ok()) << lease.status();
      EXPECT_GE(cache.stats().bytes - before, PsfBytes(*lease->psf()));
    }
  }
  EXPECT_EQ(loads_, static_cast<int>(PsfFiles().size()));
}

TEST_F(WarmCacheTest, EvictsTheLeastRecentlyUsedButNothingInUse) {
  WarmCache probe(&engine_, 1 << 30);
  const int64_t one = [&] {
    auto lease = Load(&probe, "x");
    return probe.stats().bytes;
  }();
  WarmCache cache(&engine_, 2 * one);
  auto held = Load(&cache, "held");
  for (const char* hash : {"a", "b"}) ASSERT_TRUE(Load(&cache, hash).ok());
  EXPECT_THAT(Hashes(cache), ElementsAre("b", "held"));  // "a" was the oldest entry not in use
  EXPECT_EQ(cache.stats().evictions, 1);
  {
    auto second = Load(&cache, "c"), third = Load(&cache, "d");
    EXPECT_THAT(Hashes(cache), ElementsAre("d", "c", "held"));  // exceeds the budget while all are in use
  }
  EXPECT_LE(cache.stats().bytes, 2 * one);
  EXPECT_EQ(held->psf()->fibres, kFibres);
}

TEST_F(WarmCacheTest, EvictsGridsBeforeTheModelTheyBelongTo) {
  control_->Set([](auto& b) { b.prepared_bytes = 1 << 20; });
  WarmCache cache(&engine_, (1 << 20) + (1 << 19));
  auto lease = Load(&cache, "a");
  ASSERT_TRUE(cache.Prepare(&*lease, grid_, 4, kNever).ok());
  ASSERT_TRUE(cache.Prepare(&*lease, grid_, 5, kNever).ok());
  EXPECT_EQ(cache.List().at(0).prepared_grids, 1);
  EXPECT_EQ(cache.stats().evictions, 1);
}

TEST_F(WarmCacheTest, KeepsPinnedModelsAndSaysWhenTheyLeaveNoRoom) {
  WarmCache probe(&engine_, 1 << 30);
  { ASSERT_TRUE(Load(&probe, "x").ok()); }
  WarmCache cache(&engine_, probe.stats().bytes * 3 / 2);
  ASSERT_TRUE(Load(&cache, "pinned", WarmCache::Keep{&kOwner, true}).ok());
  const absl::Status status = Load(&cache, "b", WarmCache::Keep{&kOwner}).status();
  EXPECT_TRUE(absl::IsResourceExhausted(status)) << status;
  EXPECT_TRUE(Load(&cache, "c").ok());  // a job's PSF may pass through
  EXPECT_THAT(Hashes(cache), ElementsAre("pinned"));
  EXPECT_TRUE(cache.Unload("pinned", kOwner).ok());
  EXPECT_TRUE(absl::IsNotFound(cache.Unload("pinned", kOwner)));
  EXPECT_TRUE(Load(&cache, "b", WarmCache::Keep{&kOwner}).ok());
}

TEST_F(WarmCacheTest, BelongsToWhoLoadedItFirst) {
  WarmCache cache(&engine_, 1 << 20);
  ASSERT_TRUE(Load(&cache, "a", WarmCache::Keep{&kOwner}).ok());
  ASSERT_TRUE(Load(&cache, "a", WarmCache::Keep{&kOther}).ok());
  EXPECT_EQ(cache.List().at(0).owner, "owner");
  const absl::Status pinned = Load(&cache, "a", WarmCache::Keep{&kOther, true}).status();
  EXPECT_TRUE(absl::IsPermissionDenied(pinned)) << pinned;
  EXPECT_THAT(std::string(pinned.message()), HasSubstr("belongs to \"owner\""));
  EXPECT_FALSE(cache.List().at(0).pinned);
  EXPECT_TRUE(absl::IsPermissionDenied(cache.Unload("a", kOther)));
  EXPECT_TRUE(Load(&cache, "a", WarmCache::Keep{&kAdministrator, true}).ok());
  const absl::Status again = Load(&cache, "a", WarmCache::Keep{&kOther, true}).status();
  EXPECT_TRUE(absl::IsPermissionDenied(again)) << "that it is pinned already gives no right: " << again;
  EXPECT_TRUE(Load(&cache, "a", WarmCache::Keep{&kOther}).ok());
  EXPECT_TRUE(Load(&cache, "a", WarmCache::Keep{&kOwner, true}).ok());
  EXPECT_TRUE(Load(&cache, "a", WarmCache::Keep{&kAdministrator, true}).ok());
  EXPECT_EQ(cache.List().at(0).owner, "owner");
  EXPECT_TRUE(cache.Unload("a", kOwner).ok());
}

TEST_F(WarmCacheTest, BelongsToNobodyWhileOnlyJobsBroughtIt) {
  WarmCache cache(&engine_, 1 << 20);
  ASSERT_TRUE(Load(&cache, "a").ok());
  EXPECT_EQ(cache.List().at(0).owner, "");
  EXPECT_TRUE(absl::IsPermissionDenied(cache.Unload("a", kOwner)));
  ASSERT_TRUE(Load(&cache, "a", WarmCache::Keep{&kOwner}).ok());
  EXPECT_TRUE(cache.Unload("a", kOwner).ok());
}

TEST_F(WarmCacheTest, ForgetsALoadThatFailedOrThrew) {
  WarmCache cache(&engine_, 1 << 20);
  const auto fail = [&](const WarmCache::Loader& load) {
    return cache.GetOrLoad("a", "a", WarmCache::Keep{}, load, kNever).status();
  };
  EXPECT_TRUE(absl::IsInvalidArgument(fail([] { return absl::InvalidArgumentError("bad"); })));
  EXPECT_TRUE(absl::IsInternal(fail([]() -> absl::StatusOr<Psf> { throw std::runtime_error("x"); })));
  EXPECT_TRUE(Load(&cache, "a").ok());
}

TEST_F(WarmCacheTest, LetsAJobGoThatWaitsForAnothersLoadOrGrid) {
  WarmCache cache(&engine_, 1 << 20);
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
    EXPECT_TRUE(
        absl::IsCancelled(cache.GetOrLoad("b", "b", WarmCache::Keep{}, again, stop.get_token()).status()));
    return SmallPsf();
  };
  EXPECT_TRUE(cache.GetOrLoad("b", "b", WarmCache::Keep{}, load, kNever).ok());
  control_->Set([](auto& b) { b.prepare_gate_closed = false; });
  maker.join();
}

TEST_F(WarmCacheTest, PreparesAGridForTheNextJobWhereTheFirstWasStopped) {
  WarmCache cache(&engine_, 1 << 20);
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

TEST_F(WarmCacheTest, KeepsTraceReferencesBesidePsfsOfTheSameHash) {
  WarmCache cache(&engine_, 1 << 20);
  const auto load = []() -> absl::StatusOr<WarmItem> {
    return ReferenceSpectrum{{5577.3, 6300.3, 6363.8}, {1, 2, 3}};
  };
  ASSERT_TRUE(Load(&cache, "a").ok());
  const auto reference =
      cache.GetOrLoad("a", "sky.dat", WarmCache::Keep{}, load, kNever, WarmKind::kTraceReference);
  ASSERT_TRUE(reference.ok()) << reference.status();
  EXPECT_THAT(reference->trace_reference()->wave, ElementsAre(5577.3, 6300.3, 6363.8));
  const std::vector<WarmCache::Info> listed = cache.List(WarmKind::kTraceReference);
  ASSERT_EQ(listed.size(), 1u);
  EXPECT_EQ(listed[0].rows, 3);
  EXPECT_EQ(listed[0].columns, 2);
  EXPECT_EQ(listed[0].bytes, 48);
  EXPECT_EQ(listed[0].psf, nullptr);
  EXPECT_EQ(cache.stats().of(WarmKind::kTraceReference).misses, 1);
  EXPECT_THAT(cache.Get("b", WarmKind::kTraceReference).status(),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       HasSubstr("content_hash \"b\" names no trace_reference that is loaded; load it first "
                                 "(spex psf load FILE --kind trace_reference)")));
}

TEST_F(WarmCacheTest, UnloadsWhatAJobStillUses) {
  WarmCache cache(&engine_, 1 << 20);
  auto lease = Load(&cache, "a");
  EXPECT_TRUE(cache.Unload("a", kAdministrator).ok());
  EXPECT_TRUE(cache.Prepare(&*lease, grid_, 4, kNever).ok());
  EXPECT_TRUE(absl::IsFailedPrecondition(cache.Get("a").status()));
}

TEST(StallWatchdog, CutsOffWhatWaitsTooLongInTheOrderOfTimesHoweverOftenTheyArePutOff) {
  StallWatchdog watchdog;
  Mutex mutex;
  CondVar changed;
  std::vector<int> cut;
  const auto now = StallWatchdog::Clock::now();
  const auto note = [&](int which) {
    return [&, which] {
      MutexLock lock(&mutex);
      cut.push_back(which);
      changed.NotifyAll();
    };
  };
  StallWatchdog::Watch idle(&watchdog, note(0)), late(&watchdog, note(1)), early(&watchdog, note(2)),
      put_off(&watchdog, note(3));
  const auto await = [&](size_t so_many) {
    MutexLock lock(&mutex);
    while (cut.size() < so_many) changed.Wait(&mutex);
  };
  put_off.Arm(now + std::chrono::minutes(30));
  for (int k = 1; k <= 20; ++k) put_off.Arm(now + std::chrono::hours(k));
  late.Arm(now + std::chrono::minutes(30));
  early.Arm(now + std::chrono::milliseconds(20));
  await(1);
  late.Arm(now);
  await(2);
  const auto later = StallWatchdog::Clock::now();
  idle.Arm(later + std::chrono::milliseconds(20));
  put_off.Arm(later + std::chrono::milliseconds(40));
  await(4);
  MutexLock lock(&mutex);
  EXPECT_THAT(cut, ElementsAre(2, 1, 0, 3)) << "in the order of their times";
}

TEST(StreamLimits, RefusesWhatExceedsThoseOfAConnectionAPeerOrAll) {
  StreamLimits limits({.streams = 4, .of_a_peer = 3, .of_a_connection = 2});
  const auto refused = [&](const char* connection) {
    const absl::Status status = limits.Acquire(connection).status();
    EXPECT_TRUE(status.ok() || RetryDelayOf(status).has_value());
    return std::string(status.message());
  };
  const auto first = limits.Acquire("ipv4:10.0.0.7:1000");
  {
    const auto second = limits.Acquire("ipv4:10.0.0.7:1000");
    EXPECT_THAT(refused("ipv4:10.0.0.7:1000"), HasSubstr("--max-streams-per-connection is 2"));
    const auto third = limits.Acquire("ipv4:10.0.0.7:1001");
    EXPECT_THAT(refused("ipv4:10.0.0.7:1002"), HasSubstr("--max-streams-per-peer is 3"));
    const auto other = limits.Acquire("ipv4:10.0.0.8:1000");
    EXPECT_THAT(refused("ipv4:10.0.0.9:1000"), HasSubstr("--max-streams is 4"));
    EXPECT_EQ(limits.open(), 4);
  }
  EXPECT_EQ(limits.open(), 1);
  EXPECT_EQ(refused("ipv4:10.0.0.7:1000"), "");
}

TEST(ByteBudget, TellsWhenByHowLongOthersHoldTheirs) {
  ByteBudget budget("uploads in flight", 100);
  const auto delay = [&](int64_t bytes) { return RetryDelayOf(budget.Reserve(bytes).status()).value(); };
  {
    const auto held = budget.Reserve(100);
    EXPECT_NEAR(static_cast<double>(delay(1).count()), 5000, 2400) << "a guess, while none was given back";
  }
  for (int k = 0; k < 30; ++k) EXPECT_TRUE(budget.Reserve(100).ok());  // returned at once
  const auto held = budget.Reserve(100);
  EXPECT_LT(delay(1), std::chrono::milliseconds(2500)) << "as others were given back soon";
}

TEST(StreamLimits, TellWhenByHowLongStreamsAreOpen) {
  StreamLimits::Time now;
  StreamLimits limits({.streams = 2}, [&now] { return now; });
  const auto delay = [&] { return RetryDelayOf(limits.Acquire("ipv4:10.0.0.7:1000").status()).value(); };
  const auto held = limits.Acquire("ipv4:10.0.0.7:1000");
  const auto open_for = [&](std::chrono::seconds time) {
    const auto lease = limits.Acquire("ipv4:10.0.0.7:1000");
    EXPECT_GE(delay(), std::chrono::seconds(2));
    now += time;
  };
  for (int k = 0; k < 30; ++k) open_for(std::chrono::seconds(100));
  {
    const auto other = limits.Acquire("ipv4:10.0.0.7:1000");
    EXPECT_NEAR(static_cast<double>(delay().count()), 50e3, 1e3) << "one of two that last 100 s";
  }
  for (int k = 0; k < 30; ++k) open_for(std::chrono::seconds(0));
  const auto other = limits.Acquire("ipv4:10.0.0.7:1000");
  EXPECT_EQ(delay(), std::chrono::seconds(2)) << "no sooner";
}

TEST(StreamLimits, TellsNoConnectionsOfAUnixSocketApart) {
  StreamLimits limits({.streams = 3, .of_a_peer = 1, .of_a_connection = 1});
  const auto first = limits.Acquire("unix:"), second = limits.Acquire("unix:/run/spexd");
  EXPECT_TRUE(second.ok());
  EXPECT_EQ(limits.open(), 2);
}

TEST(TaskThreads, RefusesWithADelayWhatExceedsItsLimit) {
  TaskThreads tasks(1);
  std::promise<void> end;
  ASSERT_TRUE(tasks.Start([ended = end.get_future().share()] { ended.wait(); }).ok());
  const absl::Status refused = tasks.Start([] { ADD_FAILURE() << "a refused task ran"; });
  EXPECT_TRUE(absl::IsResourceExhausted(refused));
  EXPECT_TRUE(RetryDelayOf(refused).has_value());
  EXPECT_EQ(ReasonOf(refused), "too_many_calls");
  end.set_value();
}

TEST(TaskThreads, RunEveryTaskOnceWhetherOnNewThreadsOrOnThoseThatWait) {
  constexpr int kCallers = 8, kTasks = 200;
  std::atomic<int> ran = 0;
  {
    TaskThreads tasks(kCallers * kTasks);
    std::vector<std::jthread> callers;
    for (int caller = 0; caller < kCallers; ++caller) {
      callers.emplace_back([&] {
        for (int k = 0; k < kTasks; ++k) {
          const auto done = std::make_shared<std::promise<void>>();
          const auto task = [&ran, done] {
            ++ran;
            done->set_value();
          };
          ASSERT_TRUE(tasks.Start(task).ok());
          if (k % 2 == 0) done->get_future().wait();
        }
      });
    }
    callers.clear();
  }
  EXPECT_EQ(ran, kCallers * kTasks);
}

TEST(TaskThreads, GiveEachOfManyTasksAThreadAtOnce) {
  constexpr int kTasks = 50;
  TaskThreads tasks(kTasks);
  std::promise<void> end;
  const std::shared_future<void> ended = end.get_future().share();
  std::atomic<int> at_work = 0;
  for (int k = 0; k < kTasks; ++k) {
    ASSERT_TRUE(tasks
                    .Start([&at_work, ended] {
                      ++at_work;
                      ended.wait();
                    })
                    .ok());
  }
  while (at_work < kTasks) std::this_thread::yield();
  end.set_value();
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

// JSON may contain characters from U+007F on unescaped, and terminals obey some of them.
TEST(Log, WritesNoControlCharactersInEitherFormat) {
  const std::string name = "r\xc3\xa9sum\xc3\xa9",
                    control =
                        "\xc2\x9b"
                        "31m",
                    turned =
                        "\xe2\x80\xae"
                        "fits";
  for (const LogFormat format : {LogFormat::kText, LogFormat::kJson}) {
    std::ostringstream out;
    {
      Logger log(LogLevel::kInfo, MakeStreamSink(&out), Logger::kMaxQueuedBytes, format);
      log.Info("job_ended",
               {{"name", name}, {"message", control}, {"all", std::vector<std::string>{"\x7f", turned}}});
    }
    const std::string line = out.str();
    EXPECT_FALSE(HasControlCharacters(line.substr(0, line.size() - 1))) << line;
    EXPECT_THAT(line, HasSubstr("\\u009b31m"));
    EXPECT_THAT(line, HasSubstr("\\u202efits"));
    EXPECT_THAT(line, HasSubstr(name)) << "other characters stay readable";
  }
}

TEST(Log, WritesReadableLinesWhereAsked) {
  std::ostringstream out;
  {
    Logger log(LogLevel::kInfo, MakeStreamSink(&out), Logger::kMaxQueuedBytes, LogFormat::kText);
    log.Warning("job_ended", {{"job", "17"},
                              {"seconds", 0.5},
                              {"tls", false},
                              {"message", "a \"new\" line"},
                              {"odd", "\x1b[2J\n"},
                              {"none", ""}});
  }
  const std::string text = out.str();
  EXPECT_THAT(text, ::testing::EndsWith("Z warning job_ended job=17 seconds=0.5 tls=false "
                                        "message=\"a \\\"new\\\" line\" odd=\"\\u001b[2J\\n\" none=\"\"\n"));
}

// A sink that blocks until it is told to continue, or until the log gives up.
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

TEST(Options, LimitTheQueueByUploadsAndByTheTimeOfJobsUnlessTold) {
  const FakeEngine engine(std::make_shared<EngineControl>());
  ServerOptions options;
  options.max_job_seconds = 100;
  const ServerOptions derived = WithDefaultsFor(engine, options);
  EXPECT_EQ(derived.max_queued_bytes, derived.max_upload_total_bytes);
  EXPECT_EQ(derived.max_queued_seconds, 100);
  options.max_queued_bytes = 1000;
  options.max_queued_seconds = 7;
  const ServerOptions told = WithDefaultsFor(engine, options);
  EXPECT_EQ(told.max_queued_bytes, 1000);
  EXPECT_EQ(told.max_queued_seconds, 7);
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
  refused([](auto* h) { h->set_trace_shifts(static_cast<v1::TraceAxes>(4)); }, "trace_shifts is 4");
  refused([](auto* h) { h->mutable_trace_degrees()->set_y_fibre(6); }, "trace_degrees: 6");
  refused([](auto* h) { h->set_priority(11); }, "priority is 11, must be -10 to 10");
  refused([](auto* h) { h->set_priority(-11); }, "priority is -11");
  refused(
      [](auto* h) {
        h->mutable_grid()->set_first(6000);
        h->mutable_grid()->set_step(0.1);
        h->mutable_grid()->set_count(10000000);
      },
      "10000000 bins, must be 1 to 1000000");
}

TEST(Convert, TellsAnOptionBeyondAnyNumberOfFibresByTheValueThatWasSent) {
  v1::JobHeader header;
  header.set_first_fibre(4000000000u);
  EXPECT_EQ(ToJobSpec(header).status().message(), "first_fibre is 4000000000, must be 0 to 20000");
}

TEST(Convert, BringsEveryOptionThroughAHeader) {
  EXPECT_EQ(*ToJobSpec(v1::JobHeader()), JobSpec());
  const JobSpec spec = {.grid = WavelengthGrid{6000, 0.5, 77},
                        .first_fibre = 3,
                        .fibre_count = 4,
                        .bundle_size = 5,
                        .psferr = 0.25,
                        .regularize = 0.125,
                        .barycentric_correction = true,
                        .scores = false,
                        .model = true,
                        .trace_shifts = TraceAxes::kX,
                        .trace_degrees = {{1, 0}, {5, 3}},
                        .trace_required = true,
                        .priority = -7};
  v1::JobHeader header;
  SetJobOptions(spec, &header);
  EXPECT_EQ(*ToJobSpec(header), spec);
}

TEST(Convert, RefusesOptionsOfTraceShiftsInAJobThatMeasuresNone) {
  const std::pair<const char*, std::function<void(v1::JobHeader*)>> fields[] = {
      {"trace_reference", [](auto* h) { h->mutable_trace_reference()->set_path("/sky.dat"); }},
      {"trace_required", [](auto* h) { h->set_trace_required(true); }},
      {"trace_degrees", [](auto* h) { h->mutable_trace_degrees()->set_x_fibre(1); }}};
  for (const auto& [field, set] : fields) {
    v1::JobHeader header;
    set(&header);
    EXPECT_THAT(
        ToJobSpec(header).status(),
        StatusIs(absl::StatusCode::kInvalidArgument,
                 HasSubstr(absl::StrCat(field, " is given, but trace_shifts is off; set trace_shifts"))));
    header.set_trace_shifts(v1::TRACE_AXES_AUTO);
    EXPECT_TRUE(ToJobSpec(header).ok());
  }
}

TEST(Convert, HasAnOptionForEveryFieldOfAHeaderThatIsNoInputAndNoProduct) {
  std::set<std::string> fields = {"image", "psf", "fibermap", "trace_reference", "products"};
  for (const JobOption& option : kJobOptions) EXPECT_TRUE(fields.insert(option.field).second) << option.field;
  const google::protobuf::Descriptor& header = *v1::JobHeader::descriptor();
  for (int k = 0; k < header.field_count(); ++k) EXPECT_EQ(fields.erase(header.field(k)->name()), 1u);
  EXPECT_THAT(fields, ElementsAre());
}

TEST(Convert, RefusesFieldsOfANewerVersionWhichAskForWhatIsNotDoneHere) {
  v1::JobHeader header;
  header.GetReflection()->MutableUnknownFields(&header)->AddVarint(1000, 1);
  EXPECT_EQ(ToJobSpec(header).status(),
            absl::InvalidArgumentError(
                "the job's header has field 1000, which this version of spexd does not know; "
                "leave the option out, or ask a newer spexd"));
  header.DiscardUnknownFields();
  EXPECT_TRUE(ToJobSpec(header).ok());
  v1::ProductRequest* const products = header.mutable_products();
  products->GetReflection()->MutableUnknownFields(products)->AddVarint(1000, 1);
  EXPECT_THAT(std::string(ToJobSpec(header).status().message()), HasSubstr("products has field 1000"));
}

TEST(Convert, RefusesStringsThatAreTooLong) {
  const auto refused = [](const std::function<void(v1::JobHeader*, std::string)>& change, const char* field) {
    v1::JobHeader header;
    change(&header, std::string(kMaxStringBytes, 'x'));
    EXPECT_TRUE(ToJobSpec(header).ok()) << field;
    change(&header, std::string(kMaxStringBytes + 1, 'x'));
    EXPECT_THAT(std::string(ToJobSpec(header).status().message()),
                HasSubstr(absl::StrCat(field, " has 1025 bytes, must be at most 1024")));
  };
  refused([](auto* h, auto text) { h->mutable_image()->set_path(text); }, "image.path");
  refused([](auto* h, auto text) { h->mutable_psf()->set_psf_hash(text); }, "psf.psf_hash");
  refused([](auto* h, auto text) { h->mutable_psf()->mutable_upload()->set_name(text); }, "psf.upload.name");
  refused([](auto* h, auto text) { h->mutable_image()->mutable_raw()->set_name(text); }, "image.raw.name");
  refused(
      [](auto* h, auto text) {
        h->set_trace_shifts(v1::TRACE_AXES_XY);
        h->mutable_trace_reference()->mutable_upload()->set_name(text);
      },
      "trace_reference.upload.name");
}

// The strings are shown on the terminals of users who list jobs.
TEST(Convert, RefusesStringsThatCommandATerminal) {
  v1::JobHeader header;
  header.mutable_image()->set_path("/frames/\x1b[2J.fits");
  EXPECT_EQ(ToJobSpec(header).status().message(),
            "image.path is \"/frames/\\033[2J.fits\", must be without control characters");
  header.mutable_image()->set_path(
      "/frames/\xc2\x9b"
      "2J.fits");
  EXPECT_TRUE(absl::IsInvalidArgument(ToJobSpec(header).status()));
  header.mutable_image()->set_path("/frames/r\xc3\xa9sum\xc3\xa9.fits");
  EXPECT_TRUE(ToJobSpec(header).ok()) << ToJobSpec(header).status();
}

TEST(Products, AreNamedAsTheirMessagesAre) {
  for (const ProductInfo& info : kProducts) {
    const std::string name = absl::StrCat("PRODUCT_", absl::AsciiStrToUpper(info.name));
    EXPECT_EQ(v1::Product_Name(static_cast<v1::Product>(info.product)), name);
    EXPECT_NE(v1::ProductPart::descriptor()->FindFieldByName(info.name), nullptr) << name;
    EXPECT_NE(v1::ProductRequest::descriptor()->FindFieldByName(info.request), nullptr) << name;
    EXPECT_EQ(&InfoOf(info.product), &info);
  }
  EXPECT_EQ(std::size(kProducts) + 1, static_cast<size_t>(v1::Product_ARRAYSIZE));
}

TEST(Products, AreThoseThatARequestAsksFor) {
  const auto asked = [](const v1::ProductRequest& request) {
    std::string names;
    for (const ProductInfo& info : kProducts) {
      if (Asks(request, info)) absl::StrAppend(&names, info.name, " ");
    }
    return names;
  };
  v1::ProductRequest request;
  request.mutable_fiberflat()->set_path("/flat.fits");
  EXPECT_EQ(asked(request), "");
  request.mutable_templates();
  request.set_lines(true);
  EXPECT_EQ(asked(request), "lines velocity ");
  request.set_sky(true);
  EXPECT_EQ(asked(request), "sky lines velocity ");
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
  plan.origin.traces.emplace().u.assign(kMaxFibres, 0.5);
  plan.origin.fibermap = RawTable{{std::string(80, 'y')}, 500, 20000, std::string(10000000, 'z')};
  int fibres = 0, rows = 0, cards = 0, lasts = 0;
  size_t table = 0, positions = 0, largest = 0;
  const auto count = [&](const v1::ExtractEvent& event) {
    largest = std::max(largest, event.ByteSizeLong());
    fibres += event.bundle().fibre_count();
    rows += event.model().row_count();
    cards += event.frame_info().image_cards_size();
    positions += event.frame_info().trace_shifts().u().size();
    table += event.frame_info().fibermap_data().size();
    lasts += event.bundle().last() + event.frame_info().last();
  };
  for (const v1::ExtractEvent& part : CutFrameInfo(plan, 0, 0)) count(part);
  for (const BundlePiece& piece : CutBundle(bundle, kBins)) count(Whole(piece));
  EXPECT_EQ(fibres, 25);
  EXPECT_EQ(rows, 4000);
  EXPECT_EQ(cards, 60000);
  EXPECT_EQ(table, 10000000u);
  EXPECT_EQ(positions, kMaxFibres * sizeof(double));
  EXPECT_EQ(lasts, 2);
  EXPECT_LT(largest, size_t{4} << 20);
}

TEST(EventMessages, AreTheEventsOfABundleAndKeepIt) {
  constexpr int kBins = 9000;
  auto bundle = std::make_shared<BundleSpectra>();
  bundle->fibres = {50, 25};
  bundle->residual = 1e-12;
  for (Array<float, 2>* array : {&bundle->spectra.flux, &bundle->spectra.ivar, &bundle->spectra.chi2pix}) {
    array->Assign({25, kBins});
    std::iota(array->flat().begin(), array->flat().end(), 1);
  }
  bundle->spectra.mask.Assign({25, kBins}, 3);
  bundle->spectra.resolution.Assign({25, kResolutionDiagonals, kBins}, 4);
  bundle->model.pixels.Assign({4000, 300}, 1);
  std::vector<BundlePiece> pieces = CutBundle(*bundle, kBins);
  const std::vector<v1::ExtractEvent> expected = ToEvents(BundleEvent{bundle, pieces});
  std::vector<grpc::ByteBuffer> messages = ToMessages(BundleEvent{bundle, std::move(pieces)});
  const std::weak_ptr<const BundleSpectra> held = bundle;
  bundle.reset();
  EXPECT_FALSE(held.expired());
  ASSERT_EQ(messages.size(), expected.size());
  for (size_t k = 0; k < messages.size(); ++k) {
    grpc::Slice bytes;
    ASSERT_TRUE(messages[k].DumpToSingleSlice(&bytes).ok());
    v1::ExtractEvent event;
    ASSERT_TRUE(event.ParseFromArray(bytes.begin(), static_cast<int>(bytes.size())));
    EXPECT_EQ(event.SerializeAsString(), expected[k].SerializeAsString());
  }
  messages.clear();
  EXPECT_TRUE(held.expired());
}

TEST(Convert, CutsLongSummaries) {
  JobReport report;
  for (int64_t k = 0; k < 400000; ++k) report.summary.bad2dfit.push_back((int64_t{1} << 40) + k);
  report.summary.failed_bundles.assign(20000, std::string(2000, 'f'));
  int indices = 0, lasts = 0;
  for (const v1::ExtractEvent& part : CutSummary(report)) {
    EXPECT_LT(part.ByteSizeLong(), size_t{4} << 20);
    indices += part.summary().bad2dfit_size();
    lasts += part.summary().last();
  }
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
}  // namespace spexd::testing
