// The schedule's decisions, case by case. The test sets the clock.
#include "server/schedule/schedule.h"

#include <cmath>
#include <string>
#include <vector>

#include "tests/support/matchers.h"

namespace spexd {
namespace {

using JobId = Schedule::JobId;

class ScheduleTest : public ::testing::Test {
 protected:
  JobClaim Claim(const std::string& identity, int priority = 0, const std::string& psf = "") const {
    JobClaim claim;
    claim.identity = identity;
    claim.reader = identity;
    claim.shares.queue = queue_share_;
    claim.priority = priority;
    claim.psf = psf;
    return claim;
  }
  // `queue_share`: that of all later claims.
  void Use(const Schedule::Limits& limits, double queue_share = 1) {
    schedule_.emplace(limits);
    queue_share_ = queue_share;
  }
  void Wait(double seconds) {
    now_ += std::chrono::duration_cast<std::chrono::steady_clock::duration>(
        std::chrono::duration<double>(seconds));
  }
  // Admits a job and puts it into the queue.
  JobId Queue(const JobClaim& claim) {
    const auto refusal = schedule_->WhyNot(claim, now_);
    EXPECT_FALSE(refusal.has_value()) << refusal->status;
    const JobId id = schedule_->Admit(claim, now_).id;
    schedule_->Join(id, now_);
    return id;
  }
  // Runs the next job for some seconds; returns 0 if there is none.
  JobId Run(double seconds = 1) {
    const JobId id = schedule_->Next(now_).value_or(0);
    if (id == 0) return 0;
    Wait(seconds);
    schedule_->ReleaseSlot(id, true, now_);
    schedule_->Remove(id, now_);
    return id;
  }
  std::vector<JobId> RunAll(double seconds = 1) {
    std::vector<JobId> order;
    while (const JobId id = Run(seconds)) order.push_back(id);
    return order;
  }
  void Learn(const JobClaim& claim, double seconds) {
    for (int k = 0; k < 10; ++k) {
      const JobId id = Queue(claim);
      EXPECT_EQ(Run(seconds), id);
    }
  }
  Schedule::Refusal Refused(const JobClaim& claim, const std::string& reason) {
    auto refusal = schedule_->WhyNot(claim, now_);
    EXPECT_TRUE(refusal.has_value());
    if (!refusal.has_value()) return {};
    EXPECT_EQ(refusal->reason, reason) << refusal->status;
    return *refusal;
  }

  Schedule::Time now_{std::chrono::hours(1000)};
  double queue_share_ = 1;
  std::optional<Schedule> schedule_{std::in_place, Schedule::Limits{.running = 1, .queued = 1000}};
};

TEST_F(ScheduleTest, HigherPrioritiesGoFirstAndEqualOnesInTheirOrder) {
  const JobId a = Queue(Claim("u")), b = Queue(Claim("u", 5)), c = Queue(Claim("u")),
              d = Queue(Claim("u", -1)), e = Queue(Claim("u", 5));
  EXPECT_THAT(RunAll(), ElementsAre(b, e, a, c, d));
}

TEST_F(ScheduleTest, AJobThatWaitsGainsPriority) {
  const JobId old = Queue(Claim("u", 0));
  Wait(2.5 * Schedule::kLevelSeconds);
  const JobId more = Queue(Claim("u", 3)), less = Queue(Claim("u", 2));
  EXPECT_THAT(RunAll(), ElementsAre(more, old, less));
}

TEST_F(ScheduleTest, IdentitiesTakeTurnsWhateverTheirPriorities) {
  const JobId a = Queue(Claim("a", 10)), b = Queue(Claim("a", 10)), c = Queue(Claim("a", 10)),
              d = Queue(Claim("b", -10)), e = Queue(Claim("b", -10));
  EXPECT_THAT(RunAll(), ElementsAre(a, d, b, e, c));
}

TEST_F(ScheduleTest, AFloodDelaysTheJobOfAnotherByNoJobThatHasNotBegun) {
  Use({.running = 3, .queued = 1000});
  for (int k = 0; k < 500; ++k) Queue(Claim("flood", 10));
  std::vector<JobId> running;
  for (int k = 0; k < 3; ++k) running.push_back(*schedule_->Next(now_));
  Wait(50);
  const Schedule::Admitted single = schedule_->Admit(Claim("other"), now_);
  EXPECT_LE(single.position, 2);
  schedule_->Join(single.id, now_);
  schedule_->Remove(running[0], now_);
  EXPECT_EQ(schedule_->Next(now_), single.id);
}

TEST_F(ScheduleTest, AnIdentityThatComesBackIsNotRepaidForTheTimeWithoutJobs) {
  for (int k = 0; k < 1000; ++k) Queue(Claim("a"));
  for (int k = 0; k < 500; ++k) Run(10);
  for (int k = 0; k < 100; ++k) Queue(Claim("b"));
  int in_a_row = 0;
  const int before = schedule_->stats(now_).waiting;
  while (true) {
    const JobId id = Run(10);
    if (id <= 1000) break;
    ++in_a_row;
  }
  EXPECT_EQ(schedule_->stats(now_).waiting, before - in_a_row - 1);
  EXPECT_GE(in_a_row, 1);
  EXPECT_LE(10 * in_a_row, Schedule::kMaxAhead + 20);
}

TEST_F(ScheduleTest, AmongNearlyEqualJobsOneWithAWarmPsfGoesFirst) {
  Queue(Claim("u", 0, "warm"));
  Run();
  const JobId cold = Queue(Claim("u", 1, "cold")), warm = Queue(Claim("u", 0, "warm")),
              behind = Queue(Claim("u", 0, "cold")), last = Queue(Claim("u", 0, "warm"));
  // The last two keep their order, although the PSF of the second is warm.
  EXPECT_THAT(RunAll(), ElementsAre(warm, cold, behind, last));
  const JobId far = Queue(Claim("u", 3, "new")), near = Queue(Claim("u", 0, "warm"));
  EXPECT_THAT(RunAll(), ElementsAre(far, near));
}

TEST_F(ScheduleTest, AWarmPsfCostsAnotherIdentityNoMoreThanAJob) {
  for (const char* identity : {"a", "b"}) Learn(Claim(identity, 0, "warm"), 1);
  for (int k = 0; k < 50; ++k) Queue(Claim("a", 0, "warm"));
  const JobId first_of_b = Queue(Claim("b", 0, "other"));
  const std::vector<JobId> order = RunAll();
  const auto position = std::find(order.begin(), order.end(), first_of_b) - order.begin();
  EXPECT_LE(position, 3);
}

TEST_F(ScheduleTest, TellsHowManyGoBefore) {
  EXPECT_EQ(schedule_->Admit(Claim("u"), now_).position, 0);
  EXPECT_EQ(schedule_->Admit(Claim("u"), now_).position, 1);
  EXPECT_EQ(schedule_->Admit(Claim("u", -1), now_).position, 2);
  EXPECT_EQ(schedule_->Admit(Claim("u", 1), now_).position, 0);
  EXPECT_EQ(schedule_->Admit(Claim("u"), now_).position, 3);
}

TEST_F(ScheduleTest, LimitsTheJobsOfAllAndOfAnIdentity) {
  Use({.running = 1, .queued = 4}, 0.5);
  Queue(Claim("a"));
  schedule_->Next(now_);
  Queue(Claim("a"));
  Queue(Claim("a"));
  const auto share = Refused(Claim("a"), "identity_share");
  EXPECT_THAT(std::string(share.status.message()), HasSubstr("2 jobs of \"a\" wait"));
  EXPECT_THAT(std::string(share.status.message()), HasSubstr("its queue-share of --max-queued-jobs is 2"));
  Queue(Claim("b"));
  const JobId last = Queue(Claim("b"));
  EXPECT_THAT(std::string(Refused(Claim("c"), "queue_full").status.message()),
              HasSubstr("1 jobs run and 4 wait, the limits are 1 and 4"));
  schedule_->Remove(last, now_);
  EXPECT_FALSE(schedule_->WhyNot(Claim("c"), now_).has_value());
}

TEST_F(ScheduleTest, LimitsTheBytesOfAllAndOfAnIdentity) {
  Use({.running = 1, .queued = 100, .bytes = 100}, 0.7);
  const auto with = [&](const char* identity, int64_t bytes) {
    JobClaim claim = Claim(identity);
    claim.bytes = bytes;
    return claim;
  };
  const JobId a = Queue(with("a", 60));
  const auto share = Refused(with("a", 11), "identity_share");
  EXPECT_THAT(std::string(share.status.message()),
              HasSubstr("brings 11 bytes and jobs that wait for this identity hold 60, the limit of "
                        "its queue-share of --max-queued-bytes is 70"));
  EXPECT_TRUE(share.retry_delay.has_value());
  EXPECT_FALSE(Refused(with("a", 71), "identity_share").retry_delay.has_value());
  EXPECT_TRUE(Refused(with("b", 50), "queue_bytes").retry_delay.has_value());
  EXPECT_FALSE(Refused(with("b", 101), "identity_share").retry_delay.has_value());
  EXPECT_EQ(schedule_->stats(now_).bytes, 60);
  EXPECT_EQ(schedule_->Next(now_), a);  // no longer queued
  EXPECT_FALSE(schedule_->WhyNot(with("b", 70), now_).has_value());
}

TEST_F(ScheduleTest, LimitsTheEstimatedSecondsOnceItHasLearnedThem) {
  Use({.running = 1, .queued = 100, .seconds = 60}, 0.75);
  for (int k = 0; k < 20; ++k) Queue(Claim("a"));
  RunAll(20);
  const JobId running = Queue(Claim("a"));
  EXPECT_EQ(schedule_->Next(now_), running);
  Queue(Claim("a"));
  Queue(Claim("a"));
  EXPECT_NEAR(schedule_->stats(now_).device_seconds, 40, 1e-6);
  const auto share = Refused(Claim("a"), "identity_share");
  EXPECT_THAT(std::string(share.status.message()),
              HasSubstr("its queue-share of --max-queued-seconds is 45"));
  Queue(Claim("b"));
  const auto all = Refused(Claim("b"), "queue_seconds");
  EXPECT_THAT(std::string(all.status.message()), HasSubstr("--max-queued-seconds is 60"));
  // A third of the waiting work must be done, out of 80 seconds including what runs.
  EXPECT_NEAR(all.retry_delay->count(), 1000 * 80 / 3.0, 1);
}

TEST_F(ScheduleTest, ComputesTheDelayFromWhatWaitsAndTheDevices) {
  Use({.running = 1, .queued = 9});
  Learn(Claim("a"), 30);
  for (int k = 0; k < 10; ++k) {
    Queue(Claim("a"));
    if (k == 0) schedule_->Next(now_);
  }
  EXPECT_EQ(Refused(Claim("a"), "queue_full").retry_delay, std::chrono::seconds(30));  // a tenth of 300
  schedule_->SetDevices(2, now_);
  EXPECT_EQ(Refused(Claim("a"), "queue_full").retry_delay, std::chrono::seconds(15));
}

TEST_F(ScheduleTest, RefusesAJobThatCannotMakeItsDeadline) {
  Learn(Claim("a"), 10);
  for (int k = 0; k < 5; ++k) Queue(Claim("a"));
  schedule_->Next(now_);
  JobClaim claim = Claim("a");
  claim.deadline = now_ + std::chrono::seconds(59);
  const auto refusal = Refused(claim, "deadline");
  EXPECT_TRUE(absl::IsDeadlineExceeded(refusal.status));
  EXPECT_FALSE(refusal.retry_delay.has_value());
  EXPECT_THAT(std::string(refusal.status.message()),
              HasSubstr("to wait 50 seconds and to take 10, 59 are left"));
  EXPECT_EQ(schedule_->PastDeadline(claim, now_)->status, refusal.status);
  claim.priority = 1;  // goes before the waiting jobs
  EXPECT_FALSE(schedule_->WhyNot(claim, now_).has_value());
  claim.priority = 0;
  claim.deadline = now_ + std::chrono::seconds(61);
  EXPECT_FALSE(schedule_->WhyNot(claim, now_).has_value());
}

TEST_F(ScheduleTest, CountsTheProductsThatFollowASlotByThoseOfItsKind) {
  JobClaim claim = Claim("a");
  claim.products = "velocity";
  for (int k = 0; k < 3; ++k) {
    const JobId id = Queue(claim);
    EXPECT_EQ(schedule_->ProductSeconds(id), 0) << "learned from three jobs";
    EXPECT_EQ(schedule_->Next(now_), id);
    Wait(10);
    schedule_->ReleaseSlot(id, true, now_);
    schedule_->LearnProducts(id, 30);
    schedule_->Remove(id, now_);
  }
  Queue(claim);
  schedule_->Next(now_);
  claim.deadline = now_ + std::chrono::seconds(49);
  EXPECT_THAT(std::string(Refused(claim, "deadline").status.message()),
              HasSubstr("to wait 10 seconds and to take 10 and 30 for its products, 49 are left"));
  claim.deadline = now_ + std::chrono::seconds(51);
  const JobId id = Queue(claim);
  EXPECT_EQ(schedule_->ProductSeconds(id), 30);
  // Jobs with other products, and jobs without any, are of other kinds.
  claim.deadline = now_ + std::chrono::seconds(49);
  for (const char* other : {"sky", ""}) {
    claim.products = other;
    claim.priority = 1;
    EXPECT_FALSE(schedule_->WhyNot(claim, now_).has_value());
  }
  schedule_->DoubtProducts(id);
  EXPECT_LT(schedule_->ProductSeconds(id), 30) << "so that a job is tried again";
}

TEST_F(ScheduleTest, GivesNoSlotToAJobWhoseDeadlineHasPassed) {
  JobClaim claim = Claim("a");
  claim.deadline = now_ + std::chrono::seconds(5);
  const JobId late = Queue(claim), next = Queue(Claim("a"));
  Wait(5);
  EXPECT_EQ(Run(), next);
  EXPECT_EQ(Run(), 0u);
  schedule_->Remove(late, now_);
  EXPECT_EQ(schedule_->stats(now_).waiting, 0);
}

TEST_F(ScheduleTest, AReaderThatIsSlowLeavesRoomForOthers) {
  Use({.running = 8, .queued = 100, .results = 1000});
  std::vector<JobId> held;
  const auto fill = [&](const char* reader) {
    int64_t bytes = 0;
    for (;;) {
      const JobId id = Queue(Claim(reader));
      if (schedule_->Next(now_) != id) {
        schedule_->Remove(id, now_);
        return bytes;
      }
      schedule_->Hold(id, 100);
      schedule_->ReleaseSlot(id, true, now_);  // its results are not read
      held.push_back(id);
      bytes += 100;
    }
  };
  EXPECT_EQ(fill("slow"), 600);  // 500 would be as much as remains free
  EXPECT_EQ(fill("slower"), 300);
  EXPECT_EQ(fill("third"), 100);
  const JobId waits = Queue(Claim("slow"));
  EXPECT_EQ(schedule_->Next(now_), std::nullopt);
  schedule_->Remove(held[0], now_);
  schedule_->Remove(held[6], now_);
  EXPECT_EQ(schedule_->Next(now_), std::nullopt);
  for (int k = 1; k < 4; ++k) schedule_->Remove(held[k], now_);
  EXPECT_EQ(schedule_->Next(now_), waits);
}

TEST_F(ScheduleTest, ChargesDeviceSecondsNotTimeInCompany) {
  Use({.running = 2, .queued = 10});
  const JobId a = Queue(Claim("a")), b = Queue(Claim("b"));
  schedule_->Next(now_);
  schedule_->Next(now_);
  Wait(10);
  EXPECT_NEAR(schedule_->ReleaseSlot(a, true, now_).taken, 5, 1e-9);  // half of the device
  Wait(10);
  schedule_->Pause(b, now_);  // waits for memory
  Wait(100);
  schedule_->Resume(b, now_);
  Wait(1);
  EXPECT_NEAR(schedule_->ReleaseSlot(b, true, now_).taken, 16, 1e-9);
  schedule_->Remove(a, now_);
  schedule_->Remove(b, now_);
  EXPECT_EQ(schedule_->stats(now_).running, 0);
}

TEST_F(ScheduleTest, CorrectsTheEngineByWhatJobsTookOfItsEstimates) {
  for (int k = 0; k < 20; ++k) {
    const JobId id = Queue(Claim("a"));
    schedule_->Next(now_);
    schedule_->SetEngineEstimate(id, 2, now_);
    Wait(3);
    schedule_->ReleaseSlot(id, true, now_);
    schedule_->Remove(id, now_);
  }
  const JobId id = Queue(Claim("a"));
  schedule_->Next(now_);
  schedule_->SetEngineEstimate(id, 100, now_);
  JobClaim claim = Claim("a");
  claim.deadline = now_ + std::chrono::seconds(120);
  EXPECT_THAT(std::string(Refused(claim, "deadline").status.message()), HasSubstr("to wait 150 seconds"));
}

// Alice has used less than Bob. Whatever the engine expects of his next job, which takes `seconds`, is her
// job first after it?
class FairShareTest : public ScheduleTest, public ::testing::WithParamInterface<double> {
 protected:
  bool AliceGoesFirstAfterAJobOfBob(double seconds) {
    Use({.running = 1, .queued = 10});
    Queue(Claim("alice"));
    Run(30);
    Queue(Claim("bob"));
    Run(60);
    const JobId odd = Queue(Claim("bob"));
    schedule_->Next(now_);
    schedule_->SetEngineEstimate(odd, GetParam(), now_);
    Wait(seconds);
    schedule_->ReleaseSlot(odd, true, now_);
    schedule_->Remove(odd, now_);
    EXPECT_TRUE(std::isfinite(schedule_->stats(now_).device_seconds));
    Queue(Claim("bob"));
    const JobId hers = Queue(Claim("alice"));
    return schedule_->Next(now_) == hers;
  }
};

TEST_P(FairShareTest, RemembersWhatWasUsedBeforeAJobThatFailsAtOnce) {
  EXPECT_TRUE(AliceGoesFirstAfterAJobOfBob(0));
}
TEST_P(FairShareTest, RemembersWhatWasUsedBeforeALongJob) { EXPECT_TRUE(AliceGoesFirstAfterAJobOfBob(1200)); }

INSTANTIATE_TEST_SUITE_P(OfAnyEstimate, FairShareTest,
                         ::testing::Values(std::nan(""), HUGE_VAL, -HUGE_VAL, 1e308, -1e308, 1e20, 1e4, 60, 0,
                                           -1, 5e-324));

TEST_F(ScheduleTest, CountsAnEstimateWithoutALimitAsElevenDays) {
  Learn(Claim("a"), 1);
  const JobId id = Queue(Claim("a"));
  schedule_->Next(now_);
  schedule_->SetEngineEstimate(id, HUGE_VAL, now_);
  JobClaim claim = Claim("a");
  claim.deadline = now_ + std::chrono::seconds(120);
  EXPECT_THAT(std::string(Refused(claim, "deadline").status.message()), HasSubstr("to wait 1e+06 seconds"));
}

TEST_F(ScheduleTest, ExpectsNoJobToRunPastItsDeadline) {
  for (int k = 0; k < 3; ++k) {
    const JobId id = Queue(Claim("a"));
    schedule_->Next(now_);
    Wait(1);
    schedule_->ReleaseSlot(id, true, now_);
    schedule_->Remove(id, now_);
  }
  JobClaim outsize = Claim("a");
  outsize.deadline = now_ + std::chrono::seconds(60);
  const JobId id = Queue(outsize);
  schedule_->Next(now_);
  schedule_->SetEngineEstimate(id, 10000, now_);
  JobClaim claim = Claim("a");
  claim.deadline = now_ + std::chrono::seconds(62);
  EXPECT_FALSE(schedule_->WhyNot(claim, now_).has_value());
  claim.deadline = now_ + std::chrono::milliseconds(60500);
  EXPECT_THAT(std::string(Refused(claim, "deadline").status.message()), HasSubstr("to wait 60 seconds"));
}

TEST(CostEstimates, LearnNothingOfTheEngineFromJobsThatItHardlyWorksIn) {
  CostEstimates estimates;
  estimates.Learn("a", "tiny", 0.0001, 1);
  EXPECT_EQ(estimates.Corrected(100), 100);
  estimates.Learn("a", "usual", 1, 1.5);
  EXPECT_NEAR(estimates.Corrected(100), 150, 1e-9);
}

TEST(CostEstimates, AreOfTheKindAndIdentityThenOfTheKindThenOfAll) {
  CostEstimates estimates;
  EXPECT_EQ(estimates.Of("a", "small").seconds, CostEstimates::kFirstGuess);
  EXPECT_FALSE(estimates.Of("a", "small").learned);
  for (int k = 0; k < 3; ++k) {
    estimates.Learn("a", "small", 0, 1);
    estimates.Learn("b", "small", 0, 1);
    estimates.Learn("b", "large", 0, 10);
  }
  EXPECT_NEAR(estimates.Of("a", "small").seconds, 1, 1e-9);
  EXPECT_TRUE(estimates.Of("a", "small").learned);
  EXPECT_NEAR(estimates.Of("c", "large").seconds, 10, 1e-9);
  EXPECT_TRUE(estimates.Of("c", "large").learned);
  const CostEstimates::Guess unknown = estimates.Of("a", "other");
  EXPECT_GT(unknown.seconds, 1);
  EXPECT_LT(unknown.seconds, 10);
  EXPECT_FALSE(unknown.learned);
}

TEST(CostEstimates, ForgetTheKindThatWasSeenLongestAgo) {
  CostEstimates estimates;
  for (int k = 0; k < 3; ++k) estimates.Learn("a", "first", 0, 1);
  for (size_t k = 0; k < CostEstimates::kMaxKinds; ++k) {
    estimates.Learn("a", "kind " + std::to_string(k), 0, 2);
    if (k % 100 == 0) estimates.Learn("b", "kept", 0, 1);
  }
  EXPECT_FALSE(estimates.Of("a", "first").learned);
  EXPECT_NEAR(estimates.Of("b", "kept").seconds, 1, 1e-9);
}

}  // namespace
}  // namespace spexd
