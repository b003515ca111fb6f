#include "server/registry_service.h"

#include <utility>

#include "absl/strings/str_format.h"
#include "core/base/guard.h"
#include "core/base/status_macros.h"
#include "core/fits/readers.h"
#include "core/fits/source.h"
#include "server/convert.h"
#include "server/extraction_service.h"
#include "server/string_limits.h"
#include "server/upload.h"

namespace spexd {

grpc::Status RegistryService::LoadPsf(grpc::ServerContext* context,
                                      grpc::ServerReader<v1::LoadPsfRequest>* reader, v1::PsfInfo* response) {
  return EndCall(CatchExceptions([&] { return Load(context, reader, response); }), context);
}

absl::Status RegistryService::Load(grpc::ServerContext* context,
                                   grpc::ServerReader<v1::LoadPsfRequest>* reader, v1::PsfInfo* response) {
  if (parts_.queue->stats().draining) return absl::UnavailableError("the server is draining; use another");
  StallWatchdog::Watch watch(parts_.watchdog, [context] { context->TryCancel(); });
  v1::LoadPsfRequest first;
  if (!watch.Waiting([&] { return reader->Read(&first); }) || !first.has_header()) {
    return absl::InvalidArgumentError("the first message must be the header");
  }
  const v1::LoadPsfHeader& header = first.header();
  SPEXD_RETURN_IF_ERROR(CheckStrings(header));
  const int64_t limit = parts_.options->max_upload_bytes;
  std::string name, bytes;
  ByteBudget::Reservation memory;
  if (header.has_path()) {
    name = header.path();
    SPEXD_ASSIGN_OR_RETURN(bytes, parts_.paths->ReadFile(name, limit));
  } else if (header.has_upload()) {
    const v1::PsfUpload& upload = header.upload();
    name = upload.name();
    if (upload.bytes() < 1 || upload.bytes() > static_cast<uint64_t>(limit)) {
      return absl::InvalidArgumentError(
          absl::StrFormat("upload.bytes is %d, must be 1 to %d", upload.bytes(), limit));
    }
    SPEXD_ASSIGN_OR_RETURN(memory, parts_.uploads->Reserve(static_cast<int64_t>(upload.bytes())));
    SPEXD_ASSIGN_OR_RETURN(bytes, Receive(upload, context, reader, &watch));
  } else {
    return absl::InvalidArgumentError("header: no source is set");
  }
  SPEXD_ASSIGN_OR_RETURN(const Source source, Source::FromBytes(name, std::move(bytes), SourceLimits{limit}));
  std::string hash;
  {
    SPEXD_ASSIGN_OR_RETURN(
        const PsfCache::Lease lease,
        parts_.cache->GetOrLoad(source.content_hash(), name,
                                header.pin() ? PsfCache::Keep::kPinned : PsfCache::Keep::kLoaded,
                                [&source] { return ReadPsf(source); }, {}));
    hash = lease.hash();
  }
  for (const PsfCache::Info& info : parts_.cache->List()) {
    if (info.hash == hash) ToProto(info, response);
  }
  response->set_hash(hash);
  parts_.log->Info("psf_loaded", {{"hash", hash}, {"name", name}, {"pinned", header.pin()}});
  return absl::OkStatus();
}

absl::StatusOr<std::string> RegistryService::Receive(const v1::PsfUpload& upload,
                                                     grpc::ServerContext* context,
                                                     grpc::ServerReader<v1::LoadPsfRequest>* reader,
                                                     StallWatchdog::Watch* watch) {
  Upload receiving("psf", upload.bytes(), upload.sha256());
  v1::LoadPsfRequest message;
  while (watch->Waiting([&] { return reader->Read(&message); })) {
    if (!message.has_payload()) return absl::InvalidArgumentError("a second header came");
    parts_.metrics->CountReceived(static_cast<int64_t>(message.payload().size()));
    SPEXD_RETURN_IF_ERROR(receiving.Append(receiving.received(), message.payload()));
  }
  if (context->IsCancelled()) return absl::CancelledError("the client cancelled the upload or went away");
  return receiving.Finish("");
}

grpc::Status RegistryService::ListPsfs(grpc::ServerContext* context, const v1::ListPsfsRequest*,
                                       v1::ListPsfsResponse* response) {
  const absl::Status status = CatchExceptions([&] {
    for (const PsfCache::Info& info : parts_.cache->List()) ToProto(info, response->add_psfs());
    response->set_bytes(static_cast<uint64_t>(parts_.cache->stats().bytes));
    response->set_budget_bytes(static_cast<uint64_t>(parts_.cache->budget_bytes()));
    return absl::OkStatus();
  });
  return EndCall(status, context);
}

grpc::Status RegistryService::UnloadPsf(grpc::ServerContext* context, const v1::UnloadPsfRequest* request,
                                        v1::UnloadPsfResponse*) {
  const absl::Status status = CatchExceptions([&]() -> absl::Status {
    SPEXD_RETURN_IF_ERROR(CheckStrings(*request));
    return parts_.cache->Unload(request->hash());
  });
  return EndCall(status, context);
}

}  // namespace spexd
