#include "server/grpc_probe.h"

#include <grpcpp/create_channel.h>
#include <grpcpp/security/credentials.h>
#include <grpcpp/support/channel_arguments.h>

#include "absl/strings/str_format.h"

namespace spexd {

absl::Status ProbeGrpc(const std::string& address, std::chrono::milliseconds patience) {
  grpc::ChannelArguments arguments;
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);  // no connection that is there already
  arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
  const auto channel = grpc::CreateCustomChannel(address, grpc::InsecureChannelCredentials(), arguments);
  if (channel->WaitForConnected(std::chrono::system_clock::now() + patience)) return absl::OkStatus();
  return absl::UnavailableError(
      absl::StrFormat("gRPC at %s does not answer within %d ms", address, patience.count()));
}

}  // namespace spexd
