// One ReadAccumulator call: makes the file of an accumulator, and sends it piece by piece.
#ifndef SPEXD_SERVER_RPC_ACCUMULATORS_READ_ACCUMULATOR_CALL_H_
#define SPEXD_SERVER_RPC_ACCUMULATORS_READ_ACCUMULATOR_CALL_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "core/base/threads/mutex.h"
#include "grpcpp/server_context.h"
#include "grpcpp/support/server_callback.h"
#include "server/accumulators/accumulator_store.h"
#include "server/base/stall_watchdog.h"
#include "server/jobs/server_parts.h"
#include "spexd/v1/accumulators.grpc.pb.h"

namespace spexd {

// The file is made by a thread of its own, with memory that is reserved for it; while it is sent it counts as
// a result, and a client that does not read is cut off.
class ReadAccumulatorCall final : public grpc::ServerWriteReactor<v1::AccumulatorPart>,
                                  public std::enable_shared_from_this<ReadAccumulatorCall> {
 public:
  using Reactor = grpc::ServerWriteReactor<v1::AccumulatorPart>;

  struct Begun {
    grpc::CallbackServerContext* context;
    StreamLimits::Place place;
    AccumulatorInfo info;
    uint32_t components;
  };
  // Begins a call that lives until gRPC and its thread are done with it.
  static absl::StatusOr<Reactor*> Begin(const ServerParts& parts, Begun begun);

 private:
  ReadAccumulatorCall(const ServerParts& parts, Begun begun);

  // Called by gRPC.
  void OnWriteDone(bool ok) override;
  void OnDone() override;

  absl::Status MakeFile();
  void FileMade(const absl::Status& status) ABSL_LOCKS_EXCLUDED(mutex_);
  void SendNext() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void TimePassed() ABSL_LOCKS_EXCLUDED(mutex_);
  void End(const absl::Status& status) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const ServerParts parts_;
  grpc::CallbackServerContext* const context_;  // not to be used after End
  const AccumulatorInfo info_;
  const uint32_t components_;

  Mutex mutex_;
  bool writing_ ABSL_GUARDED_BY(mutex_) = false;
  ByteBudget::Reservation memory_;  // of the file, which the thread makes before it is sent
  std::string file_;
  size_t sent_ ABSL_GUARDED_BY(mutex_) = 0;
  uint32_t crc_ ABSL_GUARDED_BY(mutex_) = 0;
  v1::AccumulatorPart part_;
  std::optional<StreamLimits::Place> place_ ABSL_GUARDED_BY(mutex_);
  std::shared_ptr<ReadAccumulatorCall> self_ ABSL_GUARDED_BY(mutex_);  // until OnDone
  std::shared_ptr<EventThread::Step> time_passed_;
  StallWatchdog::Watch stall_;
};

}  // namespace spexd

#endif  // SPEXD_SERVER_RPC_ACCUMULATORS_READ_ACCUMULATOR_CALL_H_
