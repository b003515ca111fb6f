// A thread for each Extract call. The call may block there, but must not block gRPC's own threads.
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
  // `most_calls`: maximum number of calls at once.
  explicit CallThreads(int most) : most_(most) {}
  // Waits for all calls: they must have been cancelled, or end by themselves.
  ~CallThreads();

  // Runs `body` on its own thread with a new stream, finishes the call with the status that `body` returns,
  // and keeps the stream until gRPC no longer needs it. ResourceExhausted: too many calls, or no thread
  // available.
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
