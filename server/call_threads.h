// A thread for each Extract call, which may block there: gRPC's own must not.
#ifndef SPEXD_SERVER_CALL_THREADS_H_
#define SPEXD_SERVER_CALL_THREADS_H_

#include <functional>
#include <list>
#include <memory>
#include <thread>

#include "absl/status/statusor.h"
#include "core/base/mutex.h"
#include "server/extract_stream.h"

namespace spexd {

class CallThreads {
 public:
  // At most so many calls at once.
  explicit CallThreads(int most) : most_(most) {}
  // Waits for all calls: they must have been cancelled, or end by themselves.
  ~CallThreads();

  // Runs `body` on a thread of its own with a new stream, finishes the call with what it returns, and keeps
  // the stream until gRPC is through with it. ResourceExhausted: too many calls, or no thread to be had.
  absl::StatusOr<ExtractStream*> Start(std::function<grpc::Status(ExtractStream* stream)> body)
      ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  struct Call {
    ExtractStream stream;
    std::jthread thread;
  };
  using Calls = std::list<Call>;

  const int most_;
  Mutex mutex_;
  CondVar changed_;
  Calls running_ ABSL_GUARDED_BY(mutex_);
  Calls ended_ ABSL_GUARDED_BY(mutex_);  // their threads are about to return: joined when the next call comes
};

}  // namespace spexd

#endif  // SPEXD_SERVER_CALL_THREADS_H_
