// One call of Watch: it sends a job's events from its event log and waits for more.
#ifndef SPEXD_SERVER_RPC_WATCH_CALL_H_
#define SPEXD_SERVER_RPC_WATCH_CALL_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "grpcpp/support/server_callback.h"
#include "server/calls/sending_call.h"
#include "server/calls/stream_call.h"
#include "server/detached/detached_jobs.h"
#include "server/jobs/server_parts.h"
#include "spexd/v1/jobs.grpc.pb.h"

namespace spexd {

inline constexpr char kWatchRpc[] = "spexd.v1.Jobs/Watch";

// The tasks, which read the disk, run on a thread of DetachedJobs. Only one event is in memory at a time, so
// that a slow client takes one message and delays nobody.
class WatchCall final
    : public SendingCall<StreamCall<grpc::ServerWriteReactor<v1::WatchEvent>>, v1::WatchEvent> {
 public:
  // Begins a call for events after the sequence number `after`. The call lives until gRPC and its tasks have
  // ended. `jobs` is not owned.
  static Reactor* Begin(const ServerParts& parts, CallStart start, DetachedJobs* jobs, std::string job_id,
                        uint64_t after);

 private:
  // The next step after a task.
  enum class Next { kSend, kSleep, kEnd };

  WatchCall(const ServerParts& parts, CallStart start, DetachedJobs* jobs, std::string job_id,
            uint64_t after);

  // Steps.
  absl::Status LookOn();
  absl::Status Looked();
  absl::Status AllSent() override;
  absl::Status Woken();
  absl::Status ClientWent() override { return asleep_ ? Gone() : absl::OkStatus(); }
  bool IsDecision() const override { return !watched_.has_value(); }
  void Release(const absl::Status& status) override;
  absl::Status Launch(std::function<void()> task) override;

  // The task. Only it uses the members below while it runs. An error ends the call.
  absl::Status Look();
  absl::Status ReadEvent(const LiveJob::View& view);
  void WriteAccepted();
  void WriteProgress(const LiveJob::View& view);

  DetachedJobs* const jobs_;
  const std::string job_id_;
  const uint64_t after_;
  bool asleep_ = false;
  std::optional<JobStore::Watched> watched_;  // nullopt until the first task
  uint64_t version_ = 0;                      // of the last view
  bool accepted_ = false;
  bool progress_due_ = false;
  Next next_ = Next::kSend;
  v1::WatchEvent message_;
  ByteBudget::Reservation memory_;  // for the message
};

}  // namespace spexd

#endif  // SPEXD_SERVER_RPC_WATCH_CALL_H_
