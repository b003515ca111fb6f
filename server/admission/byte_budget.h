// Memory that many jobs share, reserved before it is taken.
#ifndef SPEXD_SERVER_ADMISSION_BYTE_BUDGET_H_
#define SPEXD_SERVER_ADMISSION_BYTE_BUDGET_H_

#include <chrono>
#include <cstdint>
#include <list>
#include <stop_token>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "core/base/threads/mutex.h"

namespace spexd {

class ByteBudget {
  struct Holding;
  using Place = std::list<Holding>::iterator;

 public:
  using Time = std::chrono::steady_clock::time_point;

  // Bytes of the budget, returned on destruction. The budget outlives it.
  class Reservation {
   public:
    Reservation() = default;
    Reservation(Reservation&& other) noexcept { *this = std::move(other); }
    Reservation& operator=(Reservation&& other) noexcept {
      std::swap(budget_, other.budget_);
      std::swap(place_, other.place_);
      return *this;
    }
    ~Reservation() { Release(); }
    void Release();
    // Reserves more; ResourceExhausted as Reserve says. REQUIRES: made by a budget.
    absl::Status Grow(int64_t more);
    // Gives back all but `bytes`, if it holds more.
    void ShrinkTo(int64_t bytes);

   private:
    friend class ByteBudget;
    Reservation(ByteBudget* budget, Place place) : budget_(budget), place_(place) {}
    ByteBudget* budget_ = nullptr;
    Place place_;
  };

  // `what` names the memory in messages ("uploads in flight").
  ByteBudget(std::string what, int64_t limit) : what_(std::move(what)), limit_(limit) {}

  // ResourceExhausted: with a retry delay if others hold the bytes, after which they should be free by how
  // long others held theirs; without one if the limit is less than `bytes`.
  absl::StatusOr<Reservation> Reserve(int64_t bytes);
  // Waits for the bytes; first come, first served. Who holds some of this budget must not wait for more of
  // it. ResourceExhausted if the limit is less than `bytes`; Cancelled when a stop is requested.
  absl::StatusOr<Reservation> WaitFor(int64_t bytes, const std::stop_token& stop);
  int64_t used() const;

 private:
  struct Holding {
    int64_t bytes;
    Time since;
  };
  absl::Status CheckLimit(int64_t bytes) const;
  // ResourceExhausted unless the bytes are free.
  absl::Status CheckFree(int64_t bytes) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  Reservation Take(int64_t bytes) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Until so many bytes should be free.
  double SecondsUntilFree(int64_t bytes) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const std::string what_;
  const int64_t limit_;
  mutable Mutex mutex_;
  CondVar changed_;
  std::list<int64_t> line_ ABSL_GUARDED_BY(mutex_);      // bytes that are waited for, next first
  std::list<Holding> holdings_ ABSL_GUARDED_BY(mutex_);  // oldest first
  int64_t used_ ABSL_GUARDED_BY(mutex_) = 0;
  double held_seconds_ ABSL_GUARDED_BY(mutex_) = 5;  // mean of the last holdings; a guess at first
};

}  // namespace spexd

#endif  // SPEXD_SERVER_ADMISSION_BYTE_BUDGET_H_
