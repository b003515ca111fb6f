// Accounts of memory, charged before it is allocated, where an untrusted file decides the amount.
#ifndef SPEXD_CORE_BASE_MEMORY_MEMORY_ACCOUNT_H_
#define SPEXD_CORE_BASE_MEMORY_MEMORY_ACCOUNT_H_

#include <cstdint>
#include <memory>
#include <utility>

#include "absl/status/statusor.h"

namespace spexd {

// The interface of a memory budget. Implementations are thread-safe.
class MemoryAccount {
 public:
  virtual ~MemoryAccount() = default;
  // Takes `bytes` from the budget. Call it before they are allocated. ResourceExhausted if the budget has no
  // room.
  virtual absl::Status Take(int64_t bytes) = 0;
  // Returns `bytes` to the budget. Call it when they are freed.
  virtual void GiveBack(int64_t bytes) = 0;
};

// Bytes taken from a budget. The destructor gives them back, unless Keep was called.
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
  // Takes more bytes from the same budget. After an error the loan is unchanged.
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
