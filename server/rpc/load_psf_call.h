// One call of LoadPsf: it receives the file and loads it in a task.
#ifndef SPEXD_SERVER_RPC_LOAD_PSF_CALL_H_
#define SPEXD_SERVER_RPC_LOAD_PSF_CALL_H_

#include <optional>

#include "absl/status/status.h"
#include "grpcpp/server_context.h"
#include "server/calls/receiving_call.h"
#include "server/jobs/server_parts.h"
#include "server/messages/upload.h"
#include "spexd/v1/registry.grpc.pb.h"

namespace spexd {

inline constexpr char kLoadPsfRpc[] = "spexd.v1.PsfRegistry/LoadPsf";

class LoadPsfCall final
    : public ReceivingCall<grpc::ServerReadReactor<v1::LoadPsfRequest>, ParsedRequest<v1::LoadPsfRequest>> {
 public:
  // Begins a call, which lives until gRPC and its task have ended.
  static Reactor* Begin(const ServerParts& parts, CallStart start, v1::PsfInfo* response);

 private:
  LoadPsfCall(const ServerParts& parts, CallStart start, v1::PsfInfo* response);

  // Steps.
  absl::Status HeaderCame() override;
  absl::Status MessageCame() override;
  absl::Status InputEnded() override { return StartLoading(); }
  absl::Status StartLoading();
  void Release(const absl::Status&) override {
    receiving_.reset();
    memory_.Release();
  }

  // Task.
  absl::Status Load();

  v1::PsfInfo* const response_;  // not to be used after End
  std::optional<v1::LoadPsfHeader> header_;
  WarmKind kind_ = WarmKind::kPsf;
  std::optional<Upload> receiving_;
};

}  // namespace spexd

#endif  // SPEXD_SERVER_RPC_LOAD_PSF_CALL_H_
