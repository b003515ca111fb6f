// Memory that many jobs share, reserved before it is taken.
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

class ByteBudget {
  struct Holding;
  using HoldingIterator = std::list<Holding>::iterator;

 public:
  using Time = std::chrono::steady_clock::time_point;

  // An upload of which fewer than kSlowBytes came within kSlowTime is slow.
  static constexpr int64_t kSlowBytes = 320 << 10;
  static constexpr std::chrono::seconds kSlowTime{5};

  // Who reserves bytes.
  struct Owner {
    std::string identity;
    // Called once when the bytes are taken back, under the budget's lock: it must neither block nor use the
    // budget, and must not throw.
    std::function<void()> taken_back;
  };

  // Bytes of the budget, returned on destruction. The budget outlives it.
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
    // Reserves more; ResourceExhausted as Reserve says. REQUIRES: made by a budget.
    absl::Status Grow(int64_t more);

    // The bytes are for an upload, and their owner waits for it until EndWait. While the upload is slow, the
    // bytes may be taken back for others. Both functions return ResourceExhausted with a retry delay if that
    // has happened; the call must end then. They do nothing if nothing is reserved.
    absl::Status WaitForUpload();
    absl::Status EndWait();
    // So many more bytes of the upload came.
    void Came(int64_t bytes);

   private:
    friend class ByteBudget;
    Reservation(ByteBudget* budget, HoldingIterator holding) : budget_(budget), holding_(holding) {}
    ByteBudget* budget_ = nullptr;
    HoldingIterator holding_;
  };

  // `what` names the memory in messages ("uploads in flight"). `largest`: identities share the budget (see
  // Reserve), and each may reserve so many bytes at once; nullopt: whoever comes first may hold all. `now`:
  // the time, for tests.
  ByteBudget(
      std::string what, int64_t limit, std::optional<int64_t> largest = std::nullopt,
      std::function<Time()> now = [] { return std::chrono::steady_clock::now(); })
      : what_(std::move(what)), limit_(limit), largest_(largest), now_(std::move(now)) {}

  // If there is not enough, takes back bytes of slow uploads, those of the oldest first, where these suffice.
  //
  // Of a shared budget an identity may hold no more than it leaves free: one holds at most half, two hold at
  // most three quarters, and some always remains for others. One that holds nothing may also reserve more
  // than half at once, up to `largest`.
  //
  // ResourceExhausted: with a retry delay if others, or the owner itself, hold the bytes, after which they
  // should be free by how long others held theirs; without one if they could never be reserved.
  absl::StatusOr<Reservation> Reserve(int64_t bytes, Owner owner = {});
  // Waits for the bytes; first come, first served. Who holds some of this budget must not wait for more of
  // it. ResourceExhausted if the limit is less than `bytes`; Cancelled when a stop is requested.
  absl::StatusOr<Reservation> WaitFor(int64_t bytes, const std::stop_token& stop);
  // Takes back the bytes of all slow uploads, because others wait for entries in the queue that these hold;
  // false: there are none.
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
    Time slow_at = Time::max();  // when the upload becomes slow; max: the owner does not wait for it
    int64_t came = 0;            // since that time was set
    bool taken_back = false;
  };

  absl::Status CheckLimit(int64_t bytes) const;
  // ResourceExhausted unless the bytes are free and, in a shared budget, within the identity's part.
  absl::Status Check(int64_t bytes, const std::string& identity) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status CheckFree(int64_t bytes) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status CheckShare(int64_t bytes, const std::string& identity) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  int64_t HeldBy(const std::string& identity) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Whether the identity would exceed its part even if others held nothing.
  bool ExceedsByItself(int64_t bytes, const std::string& identity) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Takes back bytes of slow uploads until `bytes` can be reserved for the identity; none, and false, if they
  // do not suffice.
  bool TakeBackFor(int64_t bytes, const std::string& identity) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool IsSlow(const Holding& holding) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  static void NoteTakenBack(Holding* holding);
  Reservation Take(int64_t bytes, Owner owner) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Resize(Holding* holding, int64_t bytes) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status CheckTakenBack(const Holding& holding) const;
  // Until so many bytes should be given back, by the identity if given.
  double SecondsUntil(int64_t bytes, const std::string* identity) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const std::string what_;
  const int64_t limit_;
  const std::optional<int64_t> largest_;
  const std::function<Time()> now_;
  mutable Mutex mutex_;
  CondVar changed_;
  std::list<int64_t> waiters_ ABSL_GUARDED_BY(mutex_);   // bytes that are waited for, next first
  std::list<Holding> holdings_ ABSL_GUARDED_BY(mutex_);  // oldest first
  Identities identities_ ABSL_GUARDED_BY(mutex_);        // those that have holdings
  int64_t used_ ABSL_GUARDED_BY(mutex_) = 0;
  double held_seconds_ ABSL_GUARDED_BY(mutex_) = 5;  // mean of the last holdings; a guess at first
};

}  // namespace spexd

#endif  // SPEXD_SERVER_ADMISSION_BYTE_BUDGET_H_
