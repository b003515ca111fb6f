#include "server/rpc/accumulators/accumulators_service.h"

#include <memory>
#include <utility>

#include "absl/strings/str_format.h"
#include "core/base/status_macros.h"
#include "core/base/threads/guard.h"
#include "server/admission/string_limits.h"
#include "server/base/refusal.h"
#include "server/rpc/end_call.h"

namespace spexd {
namespace {

constexpr char kCreate[] = "spexd.v1.Accumulators/CreateAccumulator";
constexpr char kList[] = "spexd.v1.Accumulators/ListAccumulators";
constexpr char kRead[] = "spexd.v1.Accumulators/ReadAccumulator";
constexpr char kDrop[] = "spexd.v1.Accumulators/DropAccumulator";

void ToProto(const AccumulatorInfo& info, v1::AccumulatorRecord* out) {
  const bool pca = info.spec.kind == AccumulatorKind::kPca;
  out->set_name(info.spec.name);
  out->set_owner(info.spec.owner);
  out->set_kind(pca ? v1::ACCUMULATOR_KIND_PCA : v1::ACCUMULATOR_KIND_COADD);
  if (pca) {
    out->set_forget(info.spec.pca.forget);
    out->set_clip(info.spec.pca.clip);
  }
  out->set_with_sky(info.spec.with_sky);
  out->set_created(info.spec.created);
  out->set_changed(info.changed);
  out->set_frames(static_cast<uint64_t>(info.frames));
  out->set_rows(info.rows);
  out->set_bytes(static_cast<uint64_t>(info.bytes));
  out->set_first_wavelength(info.grid.first);
  out->set_step(info.grid.step);
  out->set_bins(static_cast<uint32_t>(info.grid.count));
}

absl::Status CheckRange(const char* field, double value, double least, double most) {
  if (value >= least && value <= most) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrFormat("%s is %g, must be %g to %g", field, value, least, most));
}

absl::StatusOr<AccumulatorSpec> ToSpec(const v1::CreateAccumulatorRequest& request) {
  AccumulatorSpec spec;
  spec.name = request.name();
  if (request.kind() == v1::ACCUMULATOR_KIND_COADD) {
    spec.kind = AccumulatorKind::kCoadd;
  } else if (request.kind() != v1::ACCUMULATOR_KIND_PCA) {
    return absl::InvalidArgumentError(absl::StrFormat(
        "kind is %d, must be %d (PCA) or %d (coadd)", static_cast<int>(request.kind()),
        static_cast<int>(v1::ACCUMULATOR_KIND_PCA), static_cast<int>(v1::ACCUMULATOR_KIND_COADD)));
  }
  const bool pca = spec.kind == AccumulatorKind::kPca;
  if (!pca && (request.has_forget() || request.has_clip()))
    return absl::InvalidArgumentError("forget and clip are those of PCA, not of a coadd");
  if (pca && request.with_sky()) return absl::InvalidArgumentError("with_sky is that of a coadd, not of PCA");
  if (request.has_forget()) spec.pca.forget = request.forget();
  if (request.has_clip()) spec.pca.clip = request.clip();
  SPEXD_RETURN_IF_ERROR(CheckRange("forget", spec.pca.forget, 0.01, 1));
  SPEXD_RETURN_IF_ERROR(CheckRange("clip", spec.pca.clip, 1, 1e6));
  spec.with_sky = request.with_sky();
  return spec;
}

}  // namespace

absl::StatusOr<AccumulatorsService::Caller> AccumulatorsService::Enter(grpc::CallbackServerContext* context,
                                                                       const char* rpc) const {
  SPEXD_ASSIGN_OR_RETURN(Identity caller, parts_.access->Admit(*context, rpc));
  SPEXD_RETURN_IF_ERROR(parts_.accumulators->CheckEnabled());
  SPEXD_ASSIGN_OR_RETURN(StreamLimits::Place place, parts_.streams->Enter(context->peer()));
  return Caller{std::move(caller), std::move(place)};
}

grpc::ServerUnaryReactor* AccumulatorsService::Answer(grpc::CallbackServerContext* context, const char* rpc,
                                                      Body body) const {
  grpc::ServerUnaryReactor* const reactor = context->DefaultReactor();
  const absl::Status begun = CatchExceptions([&]() -> absl::Status {
    SPEXD_ASSIGN_OR_RETURN(Caller entered, Enter(context, rpc));
    const auto caller = std::make_shared<const Caller>(std::move(entered));
    return parts_.tasks->Start([parts = parts_, context, rpc, reactor, caller, body = std::move(body)] {
      const absl::Status status = CatchExceptions([&] { return body(caller->identity); });
      parts.access->NoteIfDenied(*context, rpc, caller->identity, status);
      reactor->Finish(EndCall(status, context, parts.metrics));
    });
  });
  if (!begun.ok()) reactor->Finish(EndCall(begun, context, parts_.metrics));
  return reactor;
}

grpc::ServerUnaryReactor* AccumulatorsService::CreateAccumulator(grpc::CallbackServerContext* context,
                                                                 const v1::CreateAccumulatorRequest* request,
                                                                 v1::AccumulatorRecord* response) {
  return Answer(
      context, kCreate, [parts = parts_, request, response](const Identity& caller) -> absl::Status {
        SPEXD_RETURN_IF_ERROR(CheckStrings(*request));
        SPEXD_ASSIGN_OR_RETURN(AccumulatorSpec spec, ToSpec(*request));
        spec.owner = caller.name;
        SPEXD_ASSIGN_OR_RETURN(const AccumulatorInfo info, parts.accumulators->Create(std::move(spec)));
        parts.log->Info("accumulator_created", {{"accumulator", info.spec.name}, {"owner", info.spec.owner}});
        ToProto(info, response);
        return absl::OkStatus();
      });
}

grpc::ServerUnaryReactor* AccumulatorsService::ListAccumulators(grpc::CallbackServerContext* context,
                                                                const v1::ListAccumulatorsRequest* request,
                                                                v1::ListAccumulatorsResponse* response) {
  return Answer(context, kList, [parts = parts_, request, response](const Identity& caller) -> absl::Status {
    SPEXD_RETURN_IF_ERROR(CheckStrings(*request));
    if (!caller.roles.administer && !request->owner().empty() && request->owner() != caller.name) {
      return absl::PermissionDeniedError(
          absl::StrFormat("only an administrator may list the accumulators of \"%s\"", request->owner()));
    }
    const std::string owner = caller.roles.administer ? request->owner() : caller.name;
    int64_t bytes = 0;
    for (const AccumulatorInfo& info : parts.accumulators->List(owner)) {
      ToProto(info, response->add_accumulators());
      bytes += info.bytes;
    }
    response->set_bytes(static_cast<uint64_t>(bytes));
    return absl::OkStatus();
  });
}

grpc::ServerUnaryReactor* AccumulatorsService::DropAccumulator(grpc::CallbackServerContext* context,
                                                               const v1::DropAccumulatorRequest* request,
                                                               v1::DropAccumulatorResponse*) {
  return Answer(context, kDrop, [parts = parts_, request](const Identity& caller) -> absl::Status {
    SPEXD_RETURN_IF_ERROR(CheckStrings(*request));
    SPEXD_ASSIGN_OR_RETURN(const AccumulatorInfo info,
                           parts.accumulators->Find(caller, request->owner(), request->name()));
    SPEXD_RETURN_IF_ERROR(parts.accumulators->Drop(info.spec));
    parts.log->Info("accumulator_dropped",
                    {{"accumulator", info.spec.name}, {"owner", info.spec.owner}, {"identity", caller.name}});
    return absl::OkStatus();
  });
}

ReadAccumulatorCall::Reactor* AccumulatorsService::ReadAccumulator(
    grpc::CallbackServerContext* context, const v1::ReadAccumulatorRequest* request) {
  const auto begin = [&]() -> absl::StatusOr<ReadAccumulatorCall::Reactor*> {
    SPEXD_ASSIGN_OR_RETURN(Caller caller, Enter(context, kRead));
    SPEXD_RETURN_IF_ERROR(CheckStrings(*request));
    const absl::StatusOr<AccumulatorInfo> info =
        parts_.accumulators->Find(caller.identity, request->owner(), request->name());
    parts_.access->NoteIfDenied(*context, kRead, caller.identity, info.status());
    SPEXD_RETURN_IF_ERROR(info.status());
    return ReadAccumulatorCall::Begin(parts_,
                                      {context, std::move(caller.place), *info, request->components()});
  };
  const absl::StatusOr<ReadAccumulatorCall::Reactor*> call = CatchExceptions(begin);
  if (call.ok()) return *call;
  return new Refusal<ReadAccumulatorCall::Reactor>(EndCall(call.status(), context, parts_.metrics));
}

}  // namespace spexd
