// Properties of the schedule that always hold, checked with random jobs, identities, priorities, durations
// and cancellations on a simulated clock. Seeds are printed.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <map>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "server/schedule/schedule.h"

namespace spexd {
namespace {

using JobId = Schedule::JobId;

std::mt19937 Random() {
  const unsigned seed = std::random_device()();
  std::printf("seed %u\n", seed);
  ::testing::Test::RecordProperty("seed", static_cast<int>(seed));
  return std::mt19937(seed);
}

// A server whose running jobs share its devices. It checks at each step that slots and their order are as
// promised.
class Simulation {
 public:
  struct Job {
    JobClaim claim;
    double demand = 0;  // device-seconds
    double left = 0;
    double joined = -1, began = -1;
    bool gone = false;
  };

  Simulation(const Schedule::Limits& limits, int devices)
      : limits_(limits), schedule_(limits), devices_(devices) {
    schedule_.SetDevices(devices, Now());
  }

  // Admits a job; returns 0 if it is refused.
  JobId Admit(const JobClaim& claim, double demand) {
    if (schedule_.WhyNot(claim, Now()).has_value()) return 0;
    const JobId id = schedule_.Admit(claim, Now()).id;
    jobs_[id] = {claim, demand, demand, -1, -1, false};
    CountWaiting(claim, 1);
    CheckLimits(claim);
    return id;
  }
  void Join(JobId id) {
    Job& job = jobs_.at(id);
    job.joined = seconds_;
    queues_[{job.claim.identity, job.claim.priority}].push_back(id);
    schedule_.Join(id, Now());
    GrantSlots();
  }
  JobId Queue(const JobClaim& claim, double demand) {
    const JobId id = Admit(claim, demand);
    if (id != 0) Join(id);
    return id;
  }
  void Cancel(JobId id) {
    Job& job = jobs_.at(id);
    if (job.gone) return;
    auto& queue = queues_[{job.claim.identity, job.claim.priority}];
    std::erase(queue, id);
    if (job.began < 0) CountWaiting(job.claim, -1);
    End(id, false);
  }
  // Lets time pass; jobs end.
  void Advance(double seconds) {
    const double until = seconds_ + seconds;
    while (seconds_ < until) {
      const double rate = running_.empty() ? 1 : std::min(1.0, double(devices_) / running_.size());
      double step = until - seconds_;
      for (JobId id : running_) step = std::min(step, jobs_.at(id).left / rate);
      seconds_ += step;
      std::vector<JobId> ended;
      for (JobId id : running_) {
        Job& job = jobs_.at(id);
        job.left -= rate * step;
        used_[job.claim.identity] += rate * step;
        if (job.left <= 1e-9) ended.push_back(id);
      }
      for (JobId id : ended) End(id, true);
    }
  }
  const Job& job(JobId id) const { return jobs_.at(id); }
  const std::map<JobId, Job>& jobs() const { return jobs_; }
  double used(const std::string& identity) const { return used_.at(identity); }
  Schedule::Stats stats() const { return schedule_.stats(Now()); }
  double seconds() const { return seconds_; }
  bool idle() const { return running_.empty(); }
  Schedule& schedule() { return schedule_; }
  Schedule::Time Now() const {
    return Schedule::Time(
        std::chrono::duration_cast<Schedule::Time::duration>(std::chrono::duration<double>(1e6 + seconds_)));
  }

 private:
  void End(JobId id, bool completed) {
    Job& job = jobs_.at(id);
    job.gone = true;
    running_.erase(id);
    schedule_.ReleaseSlot(id, completed, Now());
    schedule_.Remove(id, Now());
    GrantSlots();
  }
  void GrantSlots() {
    while (const auto id = schedule_.Next(Now())) {
      Job& job = jobs_.at(*id);
      EXPECT_FALSE(job.gone);
      EXPECT_EQ(job.began, -1) << "a second slot";
      job.began = seconds_;
      CountWaiting(job.claim, -1);
      auto& queue = queues_[{job.claim.identity, job.claim.priority}];
      ASSERT_FALSE(queue.empty());
      EXPECT_EQ(queue.front(), *id) << "out of order";
      std::erase(queue, *id);
      running_.insert(*id);
      EXPECT_LE(running_.size(), static_cast<size_t>(limits_.running));
    }
    // No slot is free while a job is in the queue.
    EXPECT_TRUE(running_.size() == static_cast<size_t>(limits_.running) || stats().queued == 0);
  }
  void CountWaiting(const JobClaim& claim, int change) {
    auto& [jobs, bytes] = waiting_[claim.identity];
    jobs += change;
    bytes += change * claim.bytes;
  }
  void CheckLimits(const JobClaim& newcomer) const {
    const Schedule::Stats stats = this->stats();
    EXPECT_LE(stats.waiting + stats.running, limits_.queued + limits_.running);
    EXPECT_LE(stats.bytes, limits_.bytes);
    const auto& [waiting, bytes] = waiting_.at(newcomer.identity);
    EXPECT_LT(waiting - std::max(0, limits_.running - stats.running) - 1,
              newcomer.shares.queue * limits_.queued);
    EXPECT_LT(static_cast<double>(bytes) - 1, newcomer.shares.queue * static_cast<double>(limits_.bytes));
  }

  const Schedule::Limits limits_;
  Schedule schedule_;
  const int devices_;
  double seconds_ = 0;
  std::map<JobId, Job> jobs_;
  std::set<JobId> running_;
  std::map<std::string, double> used_;
  std::map<std::string, std::pair<int, int64_t>> waiting_;  // number and bytes of jobs without a slot
  std::map<std::pair<std::string, int>, std::vector<JobId>> queues_;
};

std::string Name(int k) { return std::string(1, static_cast<char>('a' + k)); }

TEST(ScheduleProperties, LimitsHoldOrderIsKeptAndEveryJobGetsASlotOrLeaves) {
  std::mt19937 random = Random();
  const auto pick = [&](int least, int most) { return std::uniform_int_distribution(least, most)(random); };
  for (int round = 0; round < 20; ++round) {
    Simulation simulation({.running = pick(1, 6), .queued = pick(0, 40), .bytes = 1000}, pick(1, 4));
    const double queue_share = 0.1 * pick(3, 10);
    std::vector<JobId> receiving, all;
    for (int step = 0; step < 500; ++step) {
      const int kind = pick(0, 9);
      if (kind < 5) {
        JobClaim claim;
        claim.identity = Name(pick(0, 4));
        claim.shares.weight = claim.identity[0] - 'a' + 0.5;
        claim.shares.queue = queue_share;
        claim.reader = claim.identity;
        claim.priority = pick(-10, 10);
        claim.bytes = pick(0, 3) == 0 ? pick(0, 300) : 0;
        claim.psf = "psf " + std::to_string(pick(0, 3));
        claim.kind = std::to_string(pick(0, 2));
        if (const JobId id = simulation.Admit(claim, 0.1 * pick(0, 100)); id != 0) {
          receiving.push_back(id);
          all.push_back(id);
        }
      } else if (kind < 8 && !receiving.empty()) {
        const auto one = receiving.begin() + pick(0, static_cast<int>(receiving.size()) - 1);
        if (!simulation.job(*one).gone) simulation.Join(*one);
        receiving.erase(one);
      } else if (kind == 8 && !all.empty()) {
        simulation.Cancel(all[pick(0, static_cast<int>(all.size()) - 1)]);
      } else {
        simulation.Advance(0.1 * pick(0, 50));
      }
    }
    for (JobId id : receiving) simulation.Cancel(id);
    simulation.Advance(1e5);
    for (const auto& [id, job] : simulation.jobs()) EXPECT_TRUE(job.gone) << id;
    const Schedule::Stats stats = simulation.stats();
    EXPECT_EQ(stats.running + stats.waiting + stats.queued, 0);
    EXPECT_EQ(stats.bytes, 0);
    EXPECT_EQ(stats.device_seconds, 0);
  }
}

TEST(ScheduleProperties, NobodyWaitsLongerThanTheFormula) {
  std::mt19937 random = Random();
  const auto pick = [&](int least, int most) { return std::uniform_int_distribution(least, most)(random); };
  constexpr int kIdentities = 4, kQueued = 60, kRunning = 4, kDevices = 2;
  constexpr double kLongest = 10;
  const auto weight = [](int identity) { return 0.5 * (1 << identity); };  // 0.5 to 4
  double all_weights = 0;
  for (int k = 0; k < kIdentities; ++k) all_weights += weight(k);
  for (int round = 0; round < 5; ++round) {
    Simulation simulation({.running = kRunning, .queued = kQueued}, kDevices);
    while (simulation.seconds() < 20000) {  // three times what the devices can do
      const int identity = pick(0, kIdentities - 1);
      JobClaim claim;
      claim.identity = claim.reader = Name(identity);
      claim.shares.weight = weight(identity);
      claim.shares.queue = 1.0 / 3;
      claim.priority = pick(0, 3) == 0 ? pick(-10, 9) : 10;
      claim.psf = pick(0, 1) == 0 ? "often" : "psf " + std::to_string(pick(0, 1000));
      claim.kind = std::to_string(pick(0, 2));
      simulation.Queue(claim, pick(1, 100) * kLongest / 100);
      simulation.Advance(pick(0, 20) * 0.1 * kLongest / 12 / kDevices);
    }
    simulation.Advance(1e5);
    double longest = 0, share_of_bound = 0;
    for (const auto& [id, job] : simulation.jobs()) {
      ASSERT_GE(job.began, 0) << id;
      // The job waits at most for its identity's own jobs that may go first; for each of them, for what
      // others get by their weights, and for the lead that they may have. The devices do all of it.
      const double own = (kQueued / 3 + kRunning + 1) * kLongest;
      const double behind = std::max(Schedule::kMaxAhead, (kRunning + 2) * kLongest / weight(0));
      const double bound =
          (2 * kMaxPriority + Schedule::kNearLevels) * Schedule::kLevelSeconds +
          (own * all_weights / job.claim.shares.weight + all_weights * behind + 2 * kIdentities * kLongest) /
              kDevices;
      const double waited = job.began - job.joined;
      EXPECT_LE(waited, bound) << id;
      longest = std::max(longest, waited);
      share_of_bound = std::max(share_of_bound, waited / bound);
    }
    std::printf("longest wait %.0f s, at most %.2f of the bound\n", longest, share_of_bound);
  }
}

TEST(ScheduleProperties, SharesOfIdentitiesThatAlwaysWaitConvergeToTheirWeights) {
  std::mt19937 random = Random();
  const auto pick = [&](int least, int most) { return std::uniform_int_distribution(least, most)(random); };
  Simulation simulation({.running = 3, .queued = 1000}, 2);
  const std::vector<double> weights = {1, 2, 4};
  std::vector<std::vector<JobId>> waiting(3);
  const auto refill = [&] {
    for (int k = 0; k < 3; ++k) {
      std::erase_if(waiting[k], [&](JobId id) { return simulation.job(id).began >= 0; });
      while (waiting[k].size() < 5) {
        JobClaim claim;
        claim.identity = claim.reader = Name(k);
        claim.shares.weight = weights[k];
        claim.priority = pick(-10, 10);
        claim.psf = "psf " + std::to_string(pick(0, 20));
        // Jobs of the first identity are short, which must give it no advantage.
        waiting[k].push_back(simulation.Queue(claim, 0.1 * (k == 0 ? pick(1, 10) : pick(1, 100))));
      }
    }
  };
  std::vector<double> before(3);
  for (double seconds = 0; seconds < 24000; seconds += 0.5) {
    if (seconds == 4000) {
      for (int k = 0; k < 3; ++k) before[k] = simulation.used(Name(k));
    }
    refill();
    simulation.Advance(0.5);
  }
  double all = 0;
  for (int k = 0; k < 3; ++k) all += simulation.used(Name(k)) - before[k];
  for (int k = 0; k < 3; ++k) {
    const double share = (simulation.used(Name(k)) - before[k]) / all;
    std::printf("weight %g: share %.4f\n", weights[k], share);
    EXPECT_NEAR(share, weights[k] / 7, 0.03 * weights[k] / 7);
  }
}

TEST(ScheduleProperties, AFloodDelaysSingleJobsOfOthersByNoJobThatHasNotBegun) {
  std::mt19937 random = Random();
  const auto pick = [&](int least, int most) { return std::uniform_int_distribution(least, most)(random); };
  constexpr int kRunning = 4;
  constexpr double kLongest = 10;
  Simulation simulation({.running = kRunning, .queued = 300}, 2);
  const auto flood = [&] {
    JobClaim claim;
    claim.identity = claim.reader = "flood";
    claim.shares.queue = 2.0 / 3;
    claim.priority = 10;
    for (;;) {
      if (simulation.Queue(claim, 0.1 * pick(1, 100)) == 0) return;
    }
  };
  flood();
  for (int k = 0; k < 300; ++k) {
    JobClaim claim;
    claim.identity = claim.reader = "single " + std::to_string(k % 3);
    claim.priority = pick(-10, 10);
    const JobId id = simulation.Queue(claim, 0.1 * pick(1, 20));
    ASSERT_NE(id, 0u);
    flood();
    simulation.Advance(60);
    ASSERT_GE(simulation.job(id).began, 0);
    // The first released slot goes to this job: the devices do at most the work that all jobs had begun.
    EXPECT_LE(simulation.job(id).began - simulation.job(id).joined, kRunning * kLongest / 2);
    EXPECT_EQ(std::count_if(simulation.jobs().begin(), simulation.jobs().end(),
                            [&](const auto& other) {
                              return other.second.began > simulation.job(id).joined &&
                                     other.second.began < simulation.job(id).began;
                            }),
              0);
  }
}

TEST(ScheduleProperties, AClientThatComesAgainAfterTheDelayIsAdmitted) {
  std::mt19937 random = Random();
  const auto pick = [&](int least, int most) { return std::uniform_int_distribution(least, most)(random); };
  int refused = 0;
  for (int round = 0; round < 30; ++round) {
    const double demand = 0.5 * pick(2, 20);
    Simulation simulation(
        {.running = pick(1, 4), .queued = pick(5, 40), .bytes = 10000, .seconds = 8 * demand}, 1);
    JobClaim claim;
    claim.identity = claim.reader = "a";
    for (int k = 0; k < 5; ++k) simulation.Queue(claim, demand);
    simulation.Advance(1000);
    claim.bytes = pick(1, 2) * 700;
    while (simulation.Queue(claim, demand) != 0) continue;
    const auto refusal = simulation.schedule().WhyNot(claim, simulation.Now());
    ASSERT_TRUE(refusal.has_value() && refusal->retry_delay.has_value());
    ++refused;
    // If jobs end together, one of them may be late.
    simulation.Advance(std::chrono::duration<double>(*refusal->retry_delay).count() + 4 * demand);
    EXPECT_FALSE(simulation.schedule().WhyNot(claim, simulation.Now()).has_value());
  }
  EXPECT_EQ(refused, 30);
}

}  // namespace
}  // namespace spexd
