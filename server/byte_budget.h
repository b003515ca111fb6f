// Memory that many jobs share, reserved before it is taken.
#ifndef SPEXD_SERVER_BYTE_BUDGET_H_
#define SPEXD_SERVER_BYTE_BUDGET_H_

#include <cstdint>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "core/base/mutex.h"

namespace spexd {

class ByteBudget {
 public:
  // Bytes of the budget, returned on destruction. The budget outlives it.
  class Reservation {
   public:
    Reservation() = default;
    Reservation(Reservation&& other) noexcept { *this = std::move(other); }
    Reservation& operator=(Reservation&& other) noexcept {
      std::swap(budget_, other.budget_);
      std::swap(bytes_, other.bytes_);
      return *this;
    }
    ~Reservation() { Release(); }
    void Release();

   private:
    friend class ByteBudget;
    Reservation(ByteBudget* budget, int64_t bytes) : budget_(budget), bytes_(bytes) {}
    ByteBudget* budget_ = nullptr;
    int64_t bytes_ = 0;
  };

  // `what` names the memory in messages ("uploads in flight").
  ByteBudget(std::string what, int64_t limit) : what_(std::move(what)), limit_(limit) {}

  // ResourceExhausted: with a retry delay if others hold the bytes, without one if the limit is less than
  // `bytes`.
  absl::StatusOr<Reservation> Reserve(int64_t bytes);
  int64_t used() const;

 private:
  const std::string what_;
  const int64_t limit_;
  mutable Mutex mutex_;
  int64_t used_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace spexd

#endif  // SPEXD_SERVER_BYTE_BUDGET_H_
