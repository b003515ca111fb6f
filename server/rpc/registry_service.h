// The service spexd.v1.PsfRegistry.
#ifndef SPEXD_SERVER_RPC_REGISTRY_SERVICE_H_
#define SPEXD_SERVER_RPC_REGISTRY_SERVICE_H_

#include "server/jobs/server_parts.h"
#include "server/rpc/load_psf_call.h"
#include "spexd/v1/registry.grpc.pb.h"

namespace spexd {

class RegistryService final : public v1::PsfRegistry::CallbackService {
 public:
  explicit RegistryService(const ServerParts& parts) : parts_(parts) {}

  LoadPsfCall::Reactor* LoadPsf(grpc::CallbackServerContext* context, v1::PsfInfo* response) override;
  grpc::ServerUnaryReactor* ListPsfs(grpc::CallbackServerContext* context, const v1::ListPsfsRequest* request,
                                     v1::ListPsfsResponse* response) override;
  grpc::ServerUnaryReactor* UnloadPsf(grpc::CallbackServerContext* context,
                                      const v1::UnloadPsfRequest* request,
                                      v1::UnloadPsfResponse* response) override;

 private:
  absl::Status List(const v1::ListPsfsRequest& request, v1::ListPsfsResponse* response) const;

  const ServerParts parts_;
};

}  // namespace spexd

#endif  // SPEXD_SERVER_RPC_REGISTRY_SERVICE_H_
