// The reactor of a call that is refused.
#ifndef SPEXD_SERVER_BASE_REFUSAL_H_
#define SPEXD_SERVER_BASE_REFUSAL_H_

#include "grpcpp/support/server_callback.h"
#include "grpcpp/support/status.h"

namespace spexd {

// Ends a call with a status and deletes itself. `Reactor`: one of gRPC's server reactors for streams.
template <typename Reactor>
class Refusal final : public Reactor {
 public:
  explicit Refusal(const grpc::Status& status) { this->Finish(status); }
  void OnDone() override { delete this; }
};

}  // namespace spexd

#endif  // SPEXD_SERVER_BASE_REFUSAL_H_
