// Counts memory before it is allocated, where an untrusted file decides the amount.
#ifndef SPEXD_CORE_BASE_MEMORY_MEMORY_ACCOUNT_H_
#define SPEXD_CORE_BASE_MEMORY_MEMORY_ACCOUNT_H_

#include <cstdint>
#include <memory>
#include <utility>

#include "absl/status/statusor.h"

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
    if (const absl::Status taken = TakeFrom(account.get(), bytes); !taken.ok()) return taken;
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
    absl::Status taken = TakeFrom(account_.get(), bytes);
    if (taken.ok()) bytes_ += bytes;
    return taken;
  }

 private:
  static absl::Status TakeFrom(MemoryAccount* account, int64_t bytes) {
    return account == nullptr ? absl::OkStatus() : account->Take(bytes);
  }

  std::shared_ptr<MemoryAccount> account_;
  int64_t bytes_ = 0;
};

}  // namespace spexd

#endif  // SPEXD_CORE_BASE_MEMORY_MEMORY_ACCOUNT_H_
