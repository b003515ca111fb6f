// The question whether a server serves, by grpc.health.v1.
#ifndef SPEXD_CLIENT_CONNECTION_HEALTH_CHECK_H_
#define SPEXD_CLIENT_CONNECTION_HEALTH_CHECK_H_

#include <grpcpp/client_context.h>
#include <grpcpp/impl/codegen/channel_interface.h>

#include <memory>

namespace spexd::client {

enum class Health { kServing, kNotServing, kUnknown };

struct HealthAnswer {
  grpc::Status status;
  Health health = Health::kUnknown;
};

// Asks for the health of the server as a whole.
HealthAnswer CheckHealth(const std::shared_ptr<grpc::ChannelInterface>& channel,
                         grpc::ClientContext* context);

}  // namespace spexd::client

#endif  // SPEXD_CLIENT_CONNECTION_HEALTH_CHECK_H_
