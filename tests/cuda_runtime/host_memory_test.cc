// The choice of devices, page-locked buffers, and copies by several threads.
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <memory>
#include <new>
#include <string>
#include <system_error>
#include <thread>
#include <vector>

#include "cuda/memory/copy_threads.h"
#include "cuda/memory/pinned_pool.h"
#include "cuda/runtime/devices/device_choice.h"
#include "tests/support/matchers.h"

namespace spexd::cuda {
namespace {

// ---- devices

const std::vector<FoundDevice> kFound = {{0, "H200", 9, 0}, {1, "V100", 7, 0}, {2, "B200", 10, 0}};

std::vector<int> Indices(const absl::StatusOr<std::vector<FoundDevice>>& chosen) {
  std::vector<int> indices;
  for (const FoundDevice& device : *chosen) indices.push_back(device.index);
  return indices;
}

void ExpectRefused(const std::vector<int>& asked, const std::vector<FoundDevice>& found,
                   const ::testing::Matcher<std::string>& words) {
  EXPECT_THAT(ChooseDevices(asked, found).status(), StatusIs(absl::StatusCode::kFailedPrecondition, words));
}

TEST(ChooseDevices, TakesAllThatAreNewEnough) {
  EXPECT_EQ(Indices(ChooseDevices({}, kFound)), (std::vector{0, 2}));
}

TEST(ChooseDevices, TakesThoseAskedForInThatOrder) {
  EXPECT_EQ(Indices(ChooseDevices({2, 0}, kFound)), (std::vector{2, 0}));
}

TEST(ChooseDevices, NamesTheDevicesThatThereAre) {
  ExpectRefused({0, 3}, kFound, AllOf(HasSubstr("device 3"), HasSubstr("0 (H200"), HasSubstr("2 (B200")));
  ExpectRefused({-1}, kFound, HasSubstr("device -1"));
}

TEST(ChooseDevices, RefusesADeviceThatIsTooOld) {
  ExpectRefused({1}, kFound, AllOf(HasSubstr("V100"), HasSubstr("7.0"), HasSubstr("8.0")));
  ExpectRefused({}, {kFound[1]}, AllOf(HasSubstr("V100"), HasSubstr("8.0")));
}

TEST(ChooseDevices, RefusesADeviceNamedTwice) { ExpectRefused({0, 0}, kFound, HasSubstr("twice")); }

TEST(CommonSharedBytes, IsWhatTheLeastOfTheDevicesHas) {
  const FoundDevice large = {0, "H200", 9, 0, 227 << 10}, small = {1, "A100", 8, 0, 163 << 10};
  EXPECT_EQ(CommonSharedBytes({large}, 200 << 10), 200 << 10);
  EXPECT_EQ(CommonSharedBytes({large, small}, 200 << 10), 159 << 10);
}

TEST(DescribeDevices, CountsEqualNames) {
  EXPECT_EQ(DescribeDevices({"H200"}), "H200");
  EXPECT_EQ(DescribeDevices({"H200", "H200"}), "2 x H200");
  EXPECT_EQ(DescribeDevices({"H200", "A100", "H200"}), "A100, 2 x H200");
}

// ---- page-locked memory

struct Counts {
  int locked = 0, freed = 0;
  int64_t room = 1 << 30;
};

class FakeSource : public PinnedPool::Source {
 public:
  explicit FakeSource(Counts* counts) : counts_(*counts) {}
  absl::StatusOr<std::byte*> Lock(int64_t bytes) override {
    if (bytes > counts_.room) return absl::ResourceExhaustedError(std::to_string(bytes));
    counts_.room -= bytes;
    ++counts_.locked;
    return static_cast<std::byte*>(std::malloc(static_cast<size_t>(bytes)));
  }
  void Free(std::byte* data, int64_t bytes) override {
    counts_.room += bytes;
    ++counts_.freed;
    std::free(data);
  }

 private:
  Counts& counts_;
};

class PinnedPoolTest : public ::testing::Test {
 protected:
  std::shared_ptr<PinnedPool> Pool(int64_t max_idle) {
    return std::make_shared<PinnedPool>(std::make_unique<FakeSource>(&counts_), max_idle);
  }
  Counts counts_;
};

TEST_F(PinnedPoolTest, UsesABufferAgain) {
  const auto pool = Pool(1 << 30);
  for (int64_t bytes : {5'000'000, 4'900'000, 5'000'001, 3'000'000}) ASSERT_TRUE(pool->Take(bytes).ok());
  EXPECT_EQ(counts_.locked, 1);
  EXPECT_EQ(pool->bytes(), 5 << 20);
}

TEST_F(PinnedPoolTest, KeepsLargeBuffersForThoseWhoNeedThem) {
  const auto pool = Pool(1 << 30);
  ASSERT_TRUE(pool->Take(100 << 20).ok());
  ASSERT_TRUE(pool->Take(100).ok());
  EXPECT_EQ(counts_.locked, 2);
}

TEST_F(PinnedPoolTest, GivesEachTakerItsOwn) {
  const auto pool = Pool(1 << 30);
  auto first = pool->Take(1000), second = pool->Take(1000);
  ASSERT_TRUE(first.ok() && second.ok());
  EXPECT_NE(first->data(), second->data());
  std::memset(first->data(), 1, 1000);
  std::memset(second->data(), 2, 1000);
  EXPECT_EQ(static_cast<int>(first->data()[999]), 1);
}

TEST_F(PinnedPoolTest, FreesWhatExceedsItsIdleLimit) {
  const auto pool = Pool(8 << 20);
  {
    auto a = pool->Take(6 << 20), b = pool->Take(4 << 20), c = pool->Take(3 << 20);
    EXPECT_EQ(pool->bytes(), 13 << 20);
  }
  EXPECT_EQ(pool->idle_bytes(), 7 << 20);
  EXPECT_EQ(pool->bytes(), 7 << 20);
  EXPECT_EQ(counts_.freed, 1);
}

TEST_F(PinnedPoolTest, GivesUpWhatIsIdleBeforeItRefuses) {
  counts_.room = 10 << 20;
  const auto pool = Pool(1 << 30);
  ASSERT_TRUE(pool->Take(4 << 20).ok());
  ASSERT_TRUE(pool->Take(9 << 20).ok());
  EXPECT_EQ(counts_.freed, 1);
}

TEST_F(PinnedPoolTest, NamesTheBytesThatCannotBeHad) {
  counts_.room = 1 << 20;
  const auto pool = Pool(1 << 30);
  const absl::Status status = pool->Take(2 << 20).status();
  EXPECT_THAT(status, StatusIs(absl::StatusCode::kResourceExhausted, HasSubstr("2097152")));
  EXPECT_EQ(pool->Take(-1).status().code(), absl::StatusCode::kResourceExhausted);
}

TEST_F(PinnedPoolTest, LivesAsLongAsItsBuffers) {
  auto pool = Pool(1 << 30);
  auto buffer = pool->Take(100);
  ASSERT_TRUE(buffer.ok());
  pool.reset();
  buffer->data()[99] = std::byte{1};
  EXPECT_EQ(counts_.freed, 0);
  buffer->Release();
  EXPECT_EQ(counts_.freed, 1);
}

// ---- copies

TEST(CopyThreads, CopiesEveryByte) {
  CopyThreads copier(3);
  for (size_t bytes :
       {size_t{0}, size_t{1}, size_t{4} << 20, (size_t{4} << 20) + 1, (size_t{13} << 20) + 7}) {
    std::vector<unsigned char> from(bytes), to(bytes, 0);
    for (size_t k = 0; k < bytes; ++k) from[k] = static_cast<unsigned char>(k * 2654435761u >> 13);
    copier.Copy(from.data(), bytes, to.data());
    EXPECT_TRUE(from == to) << bytes;
  }
}

// Three strips, and their destination.
struct ThreeStrips {
  std::vector<unsigned char> from = std::vector<unsigned char>(size_t{12} << 20, 7);
  std::vector<unsigned char> to = std::vector<unsigned char>(from.size(), 0);
};

TEST(CopyThreads, WaitsForNoHelperThatIsMerelyQueued) {
  std::vector<std::function<void()>> queued;
  CopyThreads copier([&](std::function<void()> task) { queued.push_back(std::move(task)); }, 3);
  {
    auto data = std::make_unique<ThreeStrips>();
    copier.Copy(data->from.data(), data->from.size(), data->to.data());
    EXPECT_TRUE(data->from == data->to);
  }
  // The tasks run after both arrays are gone, and find nothing to do.
  EXPECT_EQ(queued.size(), 2u);
  for (const auto& task : queued) task();
}

TEST(CopyThreads, WaitsForAHelperThatHasBegun) {
  std::vector<std::thread> threads;
  CopyThreads copier([&](std::function<void()> task) { threads.emplace_back(std::move(task)); }, 3);
  for (int k = 0; k < 20; ++k) {
    auto data = std::make_unique<ThreeStrips>();
    copier.Copy(data->from.data(), data->from.size(), data->to.data());
    EXPECT_TRUE(data->from == data->to);
  }
  for (std::thread& thread : threads) thread.join();
}

TEST(CopyThreads, CopiesAloneWhereHelpersCannotBeHad) {
  std::vector<std::function<void()>> queued;
  for (const bool memory : {true, false}) {
    const auto run = [&](std::function<void()> task) {
      if (!queued.empty() && memory) throw std::bad_alloc();
      if (!queued.empty()) throw std::system_error(EAGAIN, std::generic_category());
      queued.push_back(std::move(task));
    };
    CopyThreads copier(run, 3);
    {
      auto data = std::make_unique<ThreeStrips>();
      copier.Copy(data->from.data(), data->from.size(), data->to.data());
      EXPECT_TRUE(data->from == data->to);
    }
    for (const auto& task : queued) task();
    queued.clear();
  }
  EXPECT_NO_THROW(
      CopyThreads([](std::function<void()>) { FAIL(); }, 0).Copy("abc", 3, std::string("xyz").data()));
}

TEST(CopyThreads, ServesSeveralAtOnce) {
  CopyThreads copier(2);
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      const std::vector<unsigned char> from((size_t{9} << 20) + static_cast<size_t>(t),
                                            static_cast<unsigned char>(t + 1));
      std::vector<unsigned char> to(from.size(), 0);
      copier.Copy(from.data(), from.size(), to.data());
      EXPECT_TRUE(from == to);
    });
  }
  for (std::thread& thread : threads) thread.join();
}

}  // namespace
}  // namespace spexd::cuda
