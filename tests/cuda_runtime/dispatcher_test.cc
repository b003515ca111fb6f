#include "cuda/runtime/dispatcher.h"

#include <atomic>
#include <functional>
#include <memory>
#include <stop_token>
#include <thread>
#include <utility>
#include <vector>

#include "tests/support/matchers.h"

namespace spexd::cuda {
namespace {

constexpr int64_t kUnit = kBlockAlignment;

struct FakeState : ResidentState {
  FakeState() { NoteSettled(); }
  bool Settle() override { return true; }
};

// A state to which the device still writes until it answers. It never answers while somebody holds the
// dispatcher.
struct SlowState : ResidentState {
  SlowState(std::function<void()> asked, std::function<void()> gone)
      : asked(std::move(asked)), gone(std::move(gone)) {}
  ~SlowState() override { gone(); }
  bool Settle() override {
    asked();
    NoteSettled();
    return true;
  }
  const std::function<void()> asked, gone;
};

Dispatcher::Device Device(int slots, int units) {
  return {slots, units * kUnit, [] { return std::make_shared<FakeState>(); }};
}

class DispatcherTest : public ::testing::Test {
 protected:
  Residency::Wish Wish(PsfKey psf, int psf_units = 1, int work_units = 1) const {
    return {psf, owner_, psf_units * kUnit, work_units * kUnit};
  }
  Lease Admit(Dispatcher& dispatcher, PsfKey psf, int psf_units = 1, int work_units = 1) const {
    return *dispatcher.AdmitJob(Wish(psf, psf_units, work_units), {});
  }

  std::shared_ptr<int> owner_ = std::make_shared<int>(0);
};

TEST_F(DispatcherTest, TakesTheDeviceWithTheFewestJobs) {
  Dispatcher dispatcher({Device(2, 8), Device(2, 8)});
  const Lease a = Admit(dispatcher, 1), b = Admit(dispatcher, 2), c = Admit(dispatcher, 3),
              d = Admit(dispatcher, 4);
  EXPECT_EQ(a.device(), 0);
  EXPECT_EQ(b.device(), 1);
  EXPECT_EQ(c.device() + d.device(), 1);
  EXPECT_FALSE(dispatcher.HasFreeSlot(0));
  EXPECT_EQ(dispatcher.LoadOf(0).running, 2);
}

TEST_F(DispatcherTest, TakesTheDeviceWhereThePsfIsWhenLoadsAreEqual) {
  Dispatcher dispatcher({Device(2, 8), Device(2, 8)});
  {
    const Lease on_first = Admit(dispatcher, 1);
    EXPECT_EQ(Admit(dispatcher, 2).device(), 1);
  }
  EXPECT_EQ(Admit(dispatcher, 2).device(), 1);
  EXPECT_EQ(Admit(dispatcher, 1).device(), 0);
}

TEST_F(DispatcherTest, SpreadsPreparationsThatCameBeforeTheirJobs) {
  Dispatcher dispatcher({Device(2, 8), Device(2, 8)});
  EXPECT_EQ(dispatcher.AdmitPreparation(Wish(1, 1, 0), {})->device(), 0);
  EXPECT_EQ(dispatcher.AdmitPreparation(Wish(2, 1, 0), {})->device(), 1);
  EXPECT_EQ(dispatcher.AdmitPreparation(Wish(3, 1, 0), {})->device(), 0);
}

TEST_F(DispatcherTest, GivesEachJobASlotOfItsOwn) {
  Dispatcher dispatcher({Device(3, 8)});
  const Lease a = Admit(dispatcher, 1), b = Admit(dispatcher, 1), c = Admit(dispatcher, 1);
  EXPECT_EQ(a.slot() + b.slot() + c.slot(), 3);
  EXPECT_NE(a.slot(), b.slot());
  EXPECT_EQ(dispatcher.AdmitPreparation(Wish(2, 1, 0), {})->slot(), -1);
}

TEST_F(DispatcherTest, ServesJobsInTheOrderOfTheirArrival) {
  constexpr int kJobs = 5;
  Dispatcher dispatcher({Device(1, 8)});
  auto running = std::make_unique<Lease>(Admit(dispatcher, 1));
  std::vector<int> order;  // written by the holder of the only slot
  std::vector<std::thread> threads;
  for (int k = 0; k < kJobs; ++k) {
    threads.emplace_back([&, k] {
      const auto lease = dispatcher.AdmitJob(Wish(1), {});
      ASSERT_TRUE(lease.ok());
      order.push_back(k);
    });
    while (dispatcher.waiting() <= k) std::this_thread::yield();
  }
  running.reset();
  for (std::thread& thread : threads) thread.join();
  EXPECT_THAT(order, ElementsAre(0, 1, 2, 3, 4));
}

TEST_F(DispatcherTest, RefusesWhatNoDeviceCouldHoldNamingTheBytes) {
  Dispatcher dispatcher({Device(1, 4), Device(1, 8)});
  EXPECT_TRUE(dispatcher.Check(Wish(1, 4, 4)).ok());
  const absl::Status status = dispatcher.AdmitJob(Wish(1, 4, 5), {}).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(std::string(status.message()),
              HasSubstr("2304 bytes needed (1024 for the PSF on its grid, 1280"));
  EXPECT_THAT(std::string(status.message()), HasSubstr("a device has 2048"));
  EXPECT_EQ(dispatcher.LoadOf(1).psf_bytes, 0);
}

TEST_F(DispatcherTest, SendsALargeJobToTheDeviceThatCanHoldIt) {
  Dispatcher dispatcher({Device(1, 4), Device(1, 8)});
  EXPECT_EQ(Admit(dispatcher, 1, 4, 4).device(), 1);
}

TEST_F(DispatcherTest, LetsAPreparationPassJobsThatWaitForASlot) {
  Dispatcher dispatcher({Device(1, 8)});
  auto running = std::make_unique<Lease>(Admit(dispatcher, 1));
  std::thread waiter([&] { EXPECT_TRUE(dispatcher.AdmitJob(Wish(2), {}).ok()); });
  while (dispatcher.waiting() < 1) std::this_thread::yield();
  EXPECT_TRUE(dispatcher.AdmitPreparation(Wish(3, 1, 0), {}).ok());
  running.reset();
  waiter.join();
}

TEST_F(DispatcherTest, EndsTheWaitOfAJobThatIsCancelled) {
  Dispatcher dispatcher({Device(1, 8)});
  const Lease running = Admit(dispatcher, 1);
  std::stop_source stop;
  std::thread stopper([&] {
    while (dispatcher.waiting() < 1) std::this_thread::yield();
    stop.request_stop();
  });
  const absl::Status status = dispatcher.AdmitJob(Wish(2), stop.get_token()).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kCancelled);
  stopper.join();
  EXPECT_EQ(dispatcher.LoadOf(0).running, 1);
}

TEST_F(DispatcherTest, WaitsForTheMemoryOfOthers) {
  Dispatcher dispatcher({Device(2, 4)});
  auto running = std::make_unique<Lease>(Admit(dispatcher, 1, 1, 3));
  std::thread waiter([&] {
    const auto lease = dispatcher.AdmitJob(Wish(2, 2, 2), {});
    EXPECT_TRUE(lease.ok());
  });
  running.reset();
  waiter.join();
  EXPECT_EQ(dispatcher.LoadOf(0).work_bytes, 0);
}

TEST_F(DispatcherTest, LeavesOutADeviceThatFailed) {
  Dispatcher dispatcher({Device(1, 8), Device(1, 8)});
  dispatcher.Close(0);
  EXPECT_EQ(Admit(dispatcher, 1).device(), 1);
  dispatcher.Close(1);
  EXPECT_EQ(dispatcher.AdmitJob(Wish(1), {}).status().code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(dispatcher.Check(Wish(1)).code(), absl::StatusCode::kUnavailable);
}

TEST_F(DispatcherTest, TellsThoseWhoWaitThatTheLastDeviceFailed) {
  Dispatcher dispatcher({Device(1, 8)});
  const Lease running = Admit(dispatcher, 1);
  std::thread waiter(
      [&] { EXPECT_EQ(dispatcher.AdmitJob(Wish(2), {}).status().code(), absl::StatusCode::kUnavailable); });
  dispatcher.Close(0);
  waiter.join();
}

TEST_F(DispatcherTest, AsksNoDeviceUnderItsLock) {
  std::atomic<bool> asked = false, answers = false;
  Dispatcher* all = nullptr;
  std::atomic<int> gone = 0;
  Dispatcher dispatcher({{2, 4 * kUnit, [&] {
                            return std::make_shared<SlowState>(
                                [&] {
                                  asked = true;
                                  asked.notify_all();
                                  answers.wait(false);
                                },
                                [&] {
                                  // Objects freed with the state are not freed under the lock either,
                                  // otherwise this would wait for ever.
                                  if (all != nullptr) gone += all->LoadOf(0).running >= 0;
                                });
                          }}});
  all = &dispatcher;
  EXPECT_TRUE(dispatcher.AdmitPreparation(Wish(1, 3, 0), {}).ok());
  std::thread waiter([&] { EXPECT_TRUE(dispatcher.AdmitJob(Wish(2, 1, 2), {}).ok()); });
  asked.wait(false);
  // The device hangs, but no other thread does.
  EXPECT_EQ(dispatcher.LoadOf(0).psf_bytes, 3 * kUnit);
  EXPECT_TRUE(dispatcher.HasFreeSlot(0));
  EXPECT_TRUE(dispatcher.Check(Wish(3)).ok());
  std::stop_source stopped;
  stopped.request_stop();
  EXPECT_EQ(dispatcher.AdmitJob(Wish(3), stopped.get_token()).status().code(), absl::StatusCode::kCancelled);
  answers = true;
  answers.notify_all();
  waiter.join();
  EXPECT_EQ(gone, 1);
  EXPECT_EQ(dispatcher.LoadOf(0).psf_bytes, kUnit);
  all = nullptr;
}

TEST_F(DispatcherTest, KeepsItsBooksUnderLoad) {
  Dispatcher dispatcher({Device(2, 8), Device(3, 6)});
  std::atomic<int> running = 0, most = 0;
  std::vector<std::thread> threads;
  for (int t = 0; t < 6; ++t) {
    threads.emplace_back([&, t] {
      for (int k = 0; k < 200; ++k) {
        const PsfKey psf = static_cast<PsfKey>(1 + (t * 7 + k) % 5);
        auto lease = dispatcher.AdmitJob(Wish(psf, 1 + static_cast<int>(psf) % 2, 1 + k % 2), {});
        ASSERT_TRUE(lease.ok());
        const int now = ++running;
        int before = most;
        while (before < now && !most.compare_exchange_weak(before, now)) {
        }
        if (k % 16 == 0) lease->ForgetPsf();
        --running;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_LE(most, 5);
  for (int device : {0, 1}) {
    EXPECT_EQ(dispatcher.LoadOf(device).running, 0);
    EXPECT_EQ(dispatcher.LoadOf(device).work_bytes, 0);
  }
  owner_.reset();
  EXPECT_EQ(dispatcher.LoadOf(0).psf_bytes, 0);
  EXPECT_EQ(dispatcher.LoadOf(1).psf_bytes, 0);
}

}  // namespace
}  // namespace spexd::cuda
