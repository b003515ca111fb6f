#include "client/cancel_token.h"

#include <utility>

namespace spexd::client {

void CancelToken::Cancel() {
  MutexLock lock(&mutex_);
  if (cancelled_) return;
  cancelled_ = true;
  for (auto& [id, action] : actions_) action();
  changed_.NotifyAll();
}

bool CancelToken::cancelled() const {
  MutexLock lock(&mutex_);
  return cancelled_;
}

bool CancelToken::WaitUntil(Clock::time_point when) const {
  MutexLock lock(&mutex_);
  while (!cancelled_ && changed_.WaitUntil(&mutex_, when)) {
  }
  return cancelled_;
}

int64_t CancelToken::Attach(std::function<void()> action) {
  MutexLock lock(&mutex_);
  if (cancelled_) action();
  actions_.emplace(next_id_, std::move(action));
  return next_id_++;
}

void CancelToken::Detach(int64_t id) {
  MutexLock lock(&mutex_);
  actions_.erase(id);
}

CancelHook::CancelHook(CancelToken* token, std::function<void()> action) : token_(token) {
  if (token_ != nullptr) id_ = token_->Attach(std::move(action));
}

CancelHook::~CancelHook() {
  if (token_ != nullptr) token_->Detach(id_);
}

}  // namespace spexd::client
