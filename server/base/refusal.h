// A call that ends before it began.
#ifndef SPEXD_SERVER_BASE_REFUSAL_H_
#define SPEXD_SERVER_BASE_REFUSAL_H_

#include "grpcpp/support/server_callback.h"
#include "grpcpp/support/status.h"

namespace spexd {

// `Reactor`: one of gRPC's for streams. Deletes itself.
template <typename Reactor>
class Refusal final : public Reactor {
 public:
  explicit Refusal(const grpc::Status& status) { this->Finish(status); }
  void OnDone() override { delete this; }
};

}  // namespace spexd

#endif  // SPEXD_SERVER_BASE_REFUSAL_H_
