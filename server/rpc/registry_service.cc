#include "server/rpc/registry_service.h"

#include <cstdint>
#include <utility>

#include "absl/strings/str_format.h"
#include "core/base/status_macros.h"
#include "core/base/threads/guard.h"
#include "server/admission/string_limits.h"
#include "server/base/refusal.h"
#include "server/base/retry.h"
#include "server/calls/end_call.h"
#include "server/messages/convert.h"
#include "server/messages/page_token.h"

namespace spexd {
namespace {

constexpr char kListPsfs[] = "spexd.v1.PsfRegistry/ListPsfs";
constexpr char kUnloadPsf[] = "spexd.v1.PsfRegistry/UnloadPsf";

}  // namespace

LoadPsfCall::Reactor* RegistryService::LoadPsf(grpc::CallbackServerContext* context, v1::PsfInfo* response) {
  const auto begin = [&]() -> absl::StatusOr<LoadPsfCall::Reactor*> {
    SPEXD_ASSIGN_OR_RETURN(Identity caller, parts_.access->Admit(*context, kLoadPsfRpc));
    if (parts_.queue->stats().draining) return RefuseWhileDraining();
    SPEXD_ASSIGN_OR_RETURN(StreamLimits::Lease stream, parts_.streams->Acquire(context->peer()));
    return LoadPsfCall::Begin(parts_, {context, std::move(caller), std::move(stream)}, response);
  };
  const absl::StatusOr<LoadPsfCall::Reactor*> call = CatchExceptions(begin);
  if (call.ok()) return *call;
  return new Refusal<LoadPsfCall::Reactor>(EndCall(call.status(), context, parts_.metrics));
}

absl::Status RegistryService::List(const v1::ListPsfsRequest& request, v1::ListPsfsResponse* response) const {
  SPEXD_RETURN_IF_ERROR(CheckStrings(request));
  if (request.page_size() > kMaxPsfsPerPage) {
    return absl::InvalidArgumentError(
        absl::StrFormat("page_size is %d, must be at most %d", request.page_size(), kMaxPsfsPerPage));
  }
  SPEXD_ASSIGN_OR_RETURN(const uint64_t before,
                         NumberOfPageToken("ListPsfs", request.page_token(), UINT64_MAX));
  const int most = request.page_size() == 0 ? kMaxPsfsPerPage : static_cast<int>(request.page_size());
  SPEXD_ASSIGN_OR_RETURN(const WarmKind kind, ToWarmKind(request.kind()));
  const WarmCache::Page page = parts_.cache->ListPage(before, most, kind);
  for (const WarmCache::Info& info : page.items) ToProto(info, response->add_psfs());
  if (!page.last) response->set_next_page_token(PageToken("ListPsfs", page.items.back().used));
  response->set_total(static_cast<uint64_t>(page.total));
  response->set_bytes(static_cast<uint64_t>(parts_.cache->stats().bytes));
  response->set_budget_bytes(static_cast<uint64_t>(parts_.cache->budget_bytes()));
  return absl::OkStatus();
}

grpc::ServerUnaryReactor* RegistryService::ListPsfs(grpc::CallbackServerContext* context,
                                                    const v1::ListPsfsRequest* request,
                                                    v1::ListPsfsResponse* response) {
  grpc::ServerUnaryReactor* const reactor = context->DefaultReactor();
  const absl::Status status = CatchExceptions([&]() -> absl::Status {
    SPEXD_RETURN_IF_ERROR(parts_.access->Admit(*context, kListPsfs).status());
    return List(*request, response);
  });
  reactor->Finish(EndCall(status, context, parts_.metrics));
  return reactor;
}

grpc::ServerUnaryReactor* RegistryService::UnloadPsf(grpc::CallbackServerContext* context,
                                                     const v1::UnloadPsfRequest* request,
                                                     v1::UnloadPsfResponse*) {
  grpc::ServerUnaryReactor* const reactor = context->DefaultReactor();
  const absl::Status status = CatchExceptions([&]() -> absl::Status {
    SPEXD_ASSIGN_OR_RETURN(const Identity caller, parts_.access->Admit(*context, kUnloadPsf));
    SPEXD_RETURN_IF_ERROR(CheckStrings(*request));
    SPEXD_ASSIGN_OR_RETURN(const WarmKind kind, ToWarmKind(request->kind()));
    const absl::Status unloaded = parts_.cache->Unload(request->hash(), caller, kind);
    parts_.access->NoteIfDenied(*context, kUnloadPsf, caller, unloaded);
    return unloaded;
  });
  reactor->Finish(EndCall(status, context, parts_.metrics));
  return reactor;
}

}  // namespace spexd
