// spexd.v1.PsfRegistry.
#ifndef SPEXD_SERVER_REGISTRY_SERVICE_H_
#define SPEXD_SERVER_REGISTRY_SERVICE_H_

#include "absl/status/statusor.h"
#include "server/server_parts.h"
#include "spexd/v1/registry.grpc.pb.h"

namespace spexd {

class RegistryService final : public v1::PsfRegistry::Service {
 public:
  explicit RegistryService(const ServerParts& parts) : parts_(parts) {}

  grpc::Status LoadPsf(grpc::ServerContext* context, grpc::ServerReader<v1::LoadPsfRequest>* reader,
                       v1::PsfInfo* response) override;
  grpc::Status ListPsfs(grpc::ServerContext* context, const v1::ListPsfsRequest* request,
                        v1::ListPsfsResponse* response) override;
  grpc::Status UnloadPsf(grpc::ServerContext* context, const v1::UnloadPsfRequest* request,
                         v1::UnloadPsfResponse* response) override;

 private:
  absl::Status Load(grpc::ServerContext* context, grpc::ServerReader<v1::LoadPsfRequest>* reader,
                    v1::PsfInfo* response);
  absl::StatusOr<std::string> Receive(const v1::PsfUpload& upload, grpc::ServerContext* context,
                                      grpc::ServerReader<v1::LoadPsfRequest>* reader,
                                      StallWatchdog::Watch* watch);

  const ServerParts parts_;
};

}  // namespace spexd

#endif  // SPEXD_SERVER_REGISTRY_SERVICE_H_
