// spexd.v1.Accumulators.
#ifndef SPEXD_SERVER_RPC_ACCUMULATORS_ACCUMULATORS_SERVICE_H_
#define SPEXD_SERVER_RPC_ACCUMULATORS_ACCUMULATORS_SERVICE_H_

#include <functional>

#include "server/jobs/server_parts.h"
#include "server/rpc/accumulators/read_accumulator_call.h"
#include "spexd/v1/accumulators.grpc.pb.h"

namespace spexd {

class AccumulatorsService final : public v1::Accumulators::CallbackService {
 public:
  explicit AccumulatorsService(const ServerParts& parts) : parts_(parts) {}

  grpc::ServerUnaryReactor* CreateAccumulator(grpc::CallbackServerContext* context,
                                              const v1::CreateAccumulatorRequest* request,
                                              v1::AccumulatorRecord* response) override;
  grpc::ServerUnaryReactor* ListAccumulators(grpc::CallbackServerContext* context,
                                             const v1::ListAccumulatorsRequest* request,
                                             v1::ListAccumulatorsResponse* response) override;
  ReadAccumulatorCall::Reactor* ReadAccumulator(grpc::CallbackServerContext* context,
                                                const v1::ReadAccumulatorRequest* request) override;
  grpc::ServerUnaryReactor* DropAccumulator(grpc::CallbackServerContext* context,
                                            const v1::DropAccumulatorRequest* request,
                                            v1::DropAccumulatorResponse* response) override;

 private:
  struct Caller {
    Identity identity;
    StreamLimits::Place place;
  };
  absl::StatusOr<Caller> Enter(grpc::CallbackServerContext* context, const char* rpc) const;
  using Body = std::function<absl::Status(const Identity& caller)>;
  // Runs the call's body on a thread that may wait for the disk, and ends the call.
  grpc::ServerUnaryReactor* Answer(grpc::CallbackServerContext* context, const char* rpc, Body body) const;

  const ServerParts parts_;
};

}  // namespace spexd

#endif  // SPEXD_SERVER_RPC_ACCUMULATORS_ACCUMULATORS_SERVICE_H_
