// An Extract call as blocking reads and writes, with a stop token that gRPC's callbacks request. gRPC's own
// blocking interface does not report that a call was cancelled: it would have to be asked again and again.
#ifndef SPEXD_SERVER_EXTRACT_STREAM_H_
#define SPEXD_SERVER_EXTRACT_STREAM_H_

#include <stop_token>

#include "core/base/mutex.h"
#include "grpcpp/server_context.h"
#include "grpcpp/support/server_callback.h"
#include "spexd/v1/extraction.grpc.pb.h"

namespace spexd {

// One thread reads and writes; gRPC's threads only signal. It outlives the call: destroy it after
// WaitUntilDone.
class ExtractStream final : public grpc::ServerBidiReactor<v1::ExtractRequest, v1::ExtractEvent> {
 public:
  // Returns false if no more messages come, or the call has ended.
  bool Read(v1::ExtractRequest* message) ABSL_LOCKS_EXCLUDED(mutex_);
  // Returns once gRPC has taken the message; a client that does not read delays this. Returns false if the
  // call has ended.
  bool Write(const v1::ExtractEvent& event) ABSL_LOCKS_EXCLUDED(mutex_);

  // Requested when the client cancelled or went away, its deadline passed, or the server cut the call off.
  std::stop_token stop() const { return stop_.get_token(); }

  // Call it once, after Finish. Waits until gRPC no longer uses this object.
  void WaitUntilDone() ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  void OnReadDone(bool ok) override { Note(&read_, ok); }
  void OnWriteDone(bool ok) override { Note(&written_, ok); }
  void OnCancel() override { stop_.request_stop(); }
  void OnDone() override { Note(&done_, true); }

  enum class Result { kPending, kOk, kFailed };
  void Note(Result* result, bool ok) ABSL_LOCKS_EXCLUDED(mutex_);
  bool WaitFor(Result* result) ABSL_LOCKS_EXCLUDED(mutex_);

  std::stop_source stop_;
  Mutex mutex_;
  CondVar changed_;
  // Guarded by mutex_, under which Note and WaitFor touch them.
  Result read_ = Result::kPending, written_ = Result::kPending, done_ = Result::kPending;
};

}  // namespace spexd

#endif  // SPEXD_SERVER_EXTRACT_STREAM_H_
