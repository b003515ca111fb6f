// Memory whose amount a stranger's file decides: counted before it is allocated.
#ifndef SPEXD_CORE_BASE_MEMORY_MEMORY_ACCOUNT_H_
#define SPEXD_CORE_BASE_MEMORY_MEMORY_ACCOUNT_H_

#include <cstdint>
#include <memory>
#include <utility>

#include "absl/status/statusor.h"
#include "core/base/status_macros.h"

namespace spexd {

// Stands for a budget. Safe to use from many threads.
class MemoryAccount {
 public:
  virtual ~MemoryAccount() = default;
  // Call it before `bytes` are allocated. ResourceExhausted: the budget has no room for them.
  virtual absl::Status Take(int64_t bytes) = 0;
  // Call it when `bytes` that were taken are freed.
  virtual void GiveBack(int64_t bytes) = 0;
};

// Bytes that are given back on destruction, unless they are kept.
class MemoryLoan {
 public:
  MemoryLoan() = default;
  // `account`: null if memory has no limit.
  static absl::StatusOr<MemoryLoan> Take(std::shared_ptr<MemoryAccount> account, int64_t bytes) {
    if (account != nullptr) SPEXD_RETURN_IF_ERROR(account->Take(bytes));
    MemoryLoan loan;
    loan.account_ = std::move(account);
    loan.bytes_ = bytes;
    return loan;
  }
  MemoryLoan(MemoryLoan&& other) noexcept { *this = std::move(other); }
  MemoryLoan& operator=(MemoryLoan&& other) noexcept {
    std::swap(account_, other.account_);
    std::swap(bytes_, other.bytes_);
    return *this;
  }
  ~MemoryLoan() {
    if (account_ != nullptr) account_->GiveBack(bytes_);
  }
  void Keep() { account_ = nullptr; }
  int64_t bytes() const { return bytes_; }
  // Takes more for the same purpose; on an error the loan stays as it is.
  absl::Status Add(int64_t bytes) {
    if (account_ != nullptr) SPEXD_RETURN_IF_ERROR(account_->Take(bytes));
    bytes_ += bytes;
    return absl::OkStatus();
  }

 private:
  std::shared_ptr<MemoryAccount> account_;
  int64_t bytes_ = 0;
};

}  // namespace spexd

#endif  // SPEXD_CORE_BASE_MEMORY_MEMORY_ACCOUNT_H_
