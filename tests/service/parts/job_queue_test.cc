// The queue with many threads. Schedule's tests cover its decisions.
#include "server/admission/job_queue.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cstdio>
#include <future>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "server/base/retry.h"

namespace spexd {
namespace {

TEST(JobQueueThreads, KeepTheirSlotsApartAndLeaveNothingBehind) {
  constexpr int kThreads = 8, kJobs = 300, kSlots = 3;
  const unsigned seed = std::random_device()();
  std::printf("seed %u\n", seed);
  std::atomic<int> running = 0, served = 0;
  JobQueue queue({.running = kSlots, .queued = 4, .results = 1000});
  const auto serve = [&](unsigned thread) {
    std::mt19937 random(seed + thread);
    const auto pick = [&](int least, int most) { return std::uniform_int_distribution(least, most)(random); };
    for (int k = 0; k < kJobs; ++k) {
      JobClaim claim;
      claim.identity = claim.reader = std::to_string(pick(0, 2));
      claim.shares.queue = 0.75;
      claim.priority = pick(-10, 10);
      claim.psf = std::to_string(pick(0, 3));
      absl::StatusOr<JobQueue::Ticket> ticket = queue.Admit(claim);
      if (!ticket.ok()) {
        EXPECT_TRUE(RetryDelayOf(ticket.status()).has_value()) << ticket.status();
        continue;
      }
      const auto granted = std::make_shared<std::promise<void>>();
      if (pick(0, 9) == 0) continue;  // leaves before all its input has arrived
      ticket->Join([granted] { granted->set_value(); });
      if (pick(0, 9) == 0) continue;  // leaves the queue, or has a slot without having noticed it
      granted->get_future().wait();
      EXPECT_LE(++running, kSlots);
      ticket->SetEngineEstimate(0.001);
      {
        const SlotPause pause(&*ticket);
        ticket->HoldResults(pick(0, 300));
      }
      --running;
      if (pick(0, 4) != 0) ticket->ReleaseSlot(pick(0, 1) == 0);
      ++served;
    }
  };
  std::vector<std::jthread> threads;
  for (unsigned thread = 0; thread < kThreads; ++thread) threads.emplace_back(serve, thread);
  std::jthread observer([&](const std::stop_token& stop) {
    for (int devices = 1; !stop.stop_requested(); devices = devices % 4 + 1) {
      queue.SetDevices(devices);
      EXPECT_LE(queue.stats().running, kSlots);
    }
  });
  threads.clear();
  observer = {};
  EXPECT_GT(served, 0);
  queue.StartDraining();
  EXPECT_TRUE(queue.WaitUntilEmpty(std::chrono::steady_clock::now()));
  const JobQueue::Stats stats = queue.stats();
  EXPECT_EQ(stats.running + stats.waiting + stats.queued, 0);
  EXPECT_EQ(stats.device_seconds, 0);
  EXPECT_TRUE(absl::IsUnavailable(queue.Admit({}).status()));
}

}  // namespace
}  // namespace spexd
