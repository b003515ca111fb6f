#include "server/call_threads.h"

#include <utility>

#include "absl/strings/str_format.h"
#include "core/base/guard.h"

namespace spexd {

CallThreads::~CallThreads() {
  MutexLock lock(&mutex_);
  while (!running_.empty()) changed_.Wait(&mutex_);
}

absl::StatusOr<ExtractStream*> CallThreads::Start(std::function<grpc::Status(ExtractStream* stream)> body) {
  Calls ended;  // joined after the lock is released
  MutexLock lock(&mutex_);
  ended.swap(ended_);
  if (running_.size() >= static_cast<size_t>(most_)) {
    return absl::ResourceExhaustedError(
        absl::StrFormat("%d calls are open, the server's limit is %d", running_.size(), most_));
  }
  const auto call = running_.emplace(running_.end());
  const absl::Status started = CatchExceptions([&] {
    call->thread = std::jthread([this, call, body = std::move(body)] {
      call->stream.Finish(body(&call->stream));
      call->stream.WaitUntilDone();
      MutexLock lock(&mutex_);
      ended_.splice(ended_.end(), running_, call);
      changed_.NotifyAll();
    });
    return absl::OkStatus();
  });
  if (started.ok()) return &call->stream;
  running_.erase(call);
  return started;
}

}  // namespace spexd
