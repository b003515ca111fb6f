// A budget of memory that many jobs share. Bytes are reserved before they are allocated.
#ifndef SPEXD_SERVER_ADMISSION_BYTE_BUDGET_H_
#define SPEXD_SERVER_ADMISSION_BYTE_BUDGET_H_

#include <chrono>
#include <cstdint>
#include <functional>
#include <list>
#include <map>
#include <optional>
#include <stop_token>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "core/base/threads/mutex.h"

namespace spexd {

// Safe to use from many threads.
class ByteBudget {
  struct Holding;
  using HoldingIterator = std::list<Holding>::iterator;

 public:
  using Time = std::chrono::steady_clock::time_point;

  // An upload is slow if fewer than kSlowBytes of it came within kSlowTime.
  static constexpr int64_t kSlowBytes = 320 << 10;
  static constexpr std::chrono::seconds kSlowTime{5};

  // The owner of reserved bytes.
  struct Owner {
    std::string identity;
    // Called once when the bytes are taken back, under the budget's lock. It must not block, throw or use the
    // budget.
    std::function<void()> taken_back;
  };

  // Reserved bytes, which are returned on destruction. The budget outlives them.
  class Reservation {
   public:
    Reservation() = default;
    Reservation(Reservation&& other) noexcept { *this = std::move(other); }
    Reservation& operator=(Reservation&& other) noexcept {
      std::swap(budget_, other.budget_);
      std::swap(holding_, other.holding_);
      return *this;
    }
    ~Reservation() { Release(); }
    void Release();
    // Reserves `more` bytes. ResourceExhausted as in Reserve. REQUIRES: not default-constructed.
    absl::Status Grow(int64_t more);

    // Says that the bytes are for an upload, for which the owner waits until EndWait. While the upload is
    // slow, the bytes may be taken back for others. Both functions return ResourceExhausted with a retry
    // delay if that has happened; the call must then end. They do nothing if nothing is reserved.
    absl::Status WaitForUpload();
    absl::Status EndWait();
    // Says that `bytes` more of the upload have arrived.
    void Came(int64_t bytes);

   private:
    friend class ByteBudget;
    Reservation(ByteBudget* budget, HoldingIterator holding) : budget_(budget), holding_(holding) {}
    ByteBudget* budget_ = nullptr;
    HoldingIterator holding_;
  };

  // `what`: the name of the memory in messages ("uploads in flight"). `limit`: bytes. `largest`: identities
  // share the budget (see Reserve), and this is the most that one reservation may have; nullopt: one identity
  // may hold everything. `now`: the clock, for tests.
  ByteBudget(
      std::string what, int64_t limit, std::optional<int64_t> largest = std::nullopt,
      std::function<Time()> now = [] { return std::chrono::steady_clock::now(); })
      : what_(std::move(what)), limit_(limit), largest_(largest), now_(std::move(now)) {}

  // Reserves bytes without waiting. If too few are free, takes back bytes of slow uploads, the oldest first,
  // provided that these suffice.
  //
  // In a shared budget, an identity may hold no more than it leaves free. One identity therefore holds at
  // most half and two hold at most three quarters, so that some always remains for others. An identity that
  // holds nothing may also reserve more than half at once, up to `largest`.
  //
  // ResourceExhausted: with a retry delay if the bytes are held, by others or by the owner itself; the delay
  // is estimated from how long bytes were held lately. Without a delay if they could never be reserved.
  absl::StatusOr<Reservation> Reserve(int64_t bytes, Owner owner = {});
  // Waits for the bytes; first come, first served. A caller that holds bytes of this budget must not wait for
  // more of it. ResourceExhausted: `bytes` exceeds the limit. Cancelled: a stop was requested.
  absl::StatusOr<Reservation> WaitFor(int64_t bytes, const std::stop_token& stop);
  // Takes back the bytes of all slow uploads, because others need their entries in the queue. Returns false
  // if there are none.
  bool TakeBackFromSlow();
  int64_t limit() const { return limit_; }
  int64_t used() const;

 private:
  struct Identity {
    int64_t bytes = 0;
    int holdings = 0;
  };
  using Identities = std::map<std::string, Identity>;
  struct Holding {
    int64_t bytes;
    Time since;
    Identities::iterator identity;
    std::function<void()> call_taken_back;
    Time slow_at = Time::max();  // when the upload becomes slow; max: the owner does not wait for an upload
    int64_t came = 0;            // bytes of the upload that arrived since slow_at was set
    bool taken_back = false;
  };

  absl::Status CheckLimit(int64_t bytes) const;
  // ResourceExhausted: too few bytes are free or, in a shared budget, they exceed the identity's part.
  absl::Status Check(int64_t bytes, const std::string& identity) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status CheckFree(int64_t bytes) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status CheckShare(int64_t bytes, const std::string& identity) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  int64_t HeldBy(const std::string& identity) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Whether the bytes would exceed the identity's part even if others held nothing.
  bool ExceedsByItself(int64_t bytes, const std::string& identity) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Takes back bytes of slow uploads until `bytes` can be reserved for the identity. If they do not suffice,
  // takes back none and returns false.
  bool TakeBackFor(int64_t bytes, const std::string& identity) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool IsSlow(const Holding& holding) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  static void NoteTakenBack(Holding* holding);
  Reservation Take(int64_t bytes, Owner owner) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Resize(Holding* holding, int64_t bytes) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status CheckTakenBack(const Holding& holding) const;
  // Estimates the seconds until `bytes` are given back, by the identity if one is given.
  double SecondsUntil(int64_t bytes, const std::string* identity) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const std::string what_;
  const int64_t limit_;
  const std::optional<int64_t> largest_;
  const std::function<Time()> now_;
  mutable Mutex mutex_;
  CondVar changed_;
  std::list<int64_t> waiters_ ABSL_GUARDED_BY(mutex_);   // bytes that callers wait for, next first
  std::list<Holding> holdings_ ABSL_GUARDED_BY(mutex_);  // oldest first
  Identities identities_ ABSL_GUARDED_BY(mutex_);        // those that have holdings
  int64_t used_ ABSL_GUARDED_BY(mutex_) = 0;
  double held_seconds_ ABSL_GUARDED_BY(mutex_) = 5;  // weighted mean of the last holdings; initially a guess
};

}  // namespace spexd

#endif  // SPEXD_SERVER_ADMISSION_BYTE_BUDGET_H_
