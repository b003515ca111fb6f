#include "core/base/threads/parallel.h"

#include <gtest/gtest.h>

#include <atomic>
#include <new>
#include <set>
#include <stdexcept>

#include "core/base/threads/mutex.h"

namespace spexd {
namespace {

TEST(ParallelFor, RunsEachPieceOnce) {
  for (int threads : {1, 3, 100}) {
    Mutex mutex;
    std::multiset<int64_t> seen;
    const absl::Status status = ParallelFor(50, threads, [&](int64_t piece) {
      MutexLock lock(&mutex);
      seen.insert(piece);
      return absl::OkStatus();
    });
    EXPECT_TRUE(status.ok());
    EXPECT_EQ(seen.size(), 50u);
    EXPECT_EQ(std::set<int64_t>(seen.begin(), seen.end()).size(), 50u);
  }
}

TEST(ParallelFor, CarriesWhatAPieceThrowsToTheCaller) {
  for (int threads : {1, 4}) {
    const absl::Status memory = ParallelFor(100, threads, [](int64_t piece) -> absl::Status {
      if (piece >= 7) throw std::bad_alloc();
      return absl::OkStatus();
    });
    EXPECT_EQ(memory, absl::ResourceExhaustedError("out of memory"));
    const absl::Status other =
        ParallelFor(100, threads, [](int64_t) -> absl::Status { throw std::runtime_error("torn tile"); });
    EXPECT_EQ(other, absl::InternalError("internal error: torn tile"));
  }
}

TEST(ParallelFor, BeginsNothingMoreAfterAnError) {
  std::atomic<int> ran = 0;
  const absl::Status status = ParallelFor(1000, 1, [&](int64_t piece) {
    ++ran;
    return piece == 3 ? absl::DataLossError("piece 3") : absl::OkStatus();
  });
  EXPECT_EQ(status, absl::DataLossError("piece 3"));
  EXPECT_EQ(ran, 4);
}

}  // namespace
}  // namespace spexd
