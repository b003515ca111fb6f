#include "server/rpc/load_psf_call.h"

#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_format.h"
#include "core/base/status_macros.h"
#include "server/admission/string_limits.h"
#include "server/inputs/warm_item.h"
#include "server/jobs/warm_file.h"
#include "server/messages/convert.h"

namespace spexd {

LoadPsfCall::Reactor* LoadPsfCall::Begin(const ServerParts& parts, CallStart start, v1::PsfInfo* response) {
  const std::shared_ptr<LoadPsfCall> call(new LoadPsfCall(parts, std::move(start), response));
  return call->ReceivingCall::Begin();
}

LoadPsfCall::LoadPsfCall(const ServerParts& parts, CallStart start, v1::PsfInfo* response)
    : ReceivingCall(parts, kLoadPsfRpc, std::move(start), parts.options->max_job_seconds),
      response_(response) {}

absl::Status LoadPsfCall::HeaderCame() {
  header_ = request_.message().header();
  request_.Clear();
  SPEXD_RETURN_IF_ERROR(CheckStrings(*header_));
  SPEXD_ASSIGN_OR_RETURN(kind_, ToWarmKind(header_->kind()));
  if (header_->has_path()) return StartLoading();
  if (!header_->has_upload()) return absl::InvalidArgumentError("header: no source is set");
  const v1::PsfUpload& upload = header_->upload();
  const int64_t limit = MaxFileBytes(*parts_.options, kind_);
  if (upload.bytes() < 1 || upload.bytes() > static_cast<uint64_t>(limit)) {
    return absl::InvalidArgumentError(
        absl::StrFormat("upload.bytes is %d, must be 1 to %d", upload.bytes(), limit));
  }
  SPEXD_ASSIGN_OR_RETURN(memory_, parts_.uploads->Reserve(static_cast<int64_t>(upload.bytes()), Uploader()));
  receiving_.emplace(absl::AsciiStrToLower(WarmKindName(kind_)), upload.bytes(), upload.sha256());
  return ReadOn();
}

absl::Status LoadPsfCall::MessageCame() {
  const v1::LoadPsfRequest& message = request_.message();
  if (!message.has_payload()) return absl::InvalidArgumentError("a second header came");
  SPEXD_RETURN_IF_ERROR(receiving_->Append(receiving_->received(), message.payload()));
  return ReadOn(static_cast<int64_t>(message.payload().size()));
}

absl::Status LoadPsfCall::StartLoading() {
  return Start([this] { return Load(); },
               [this] {
                 End(absl::OkStatus());
                 return absl::OkStatus();
               });
}

absl::Status LoadPsfCall::Load() {
  FileInput file;
  file.name = header_->has_path() ? header_->path() : header_->upload().name();
  if (receiving_.has_value()) {
    SPEXD_ASSIGN_OR_RETURN(file.bytes, receiving_->Finish(""));
  }
  const std::string name = file.name;
  const WarmCache::Keep keep = {&caller_, header_->pin()};
  std::string hash;
  {
    const absl::StatusOr<WarmCache::Lease> lease =
        LoadWarmFile(parts_, std::move(file), keep, stop_token(), kind_);
    if (!lease.ok()) return lease.status();
    hash = lease->hash();
  }
  for (const WarmCache::Info& info : parts_.cache->List(kind_)) {
    if (info.hash == hash) ToProto(info, response_);
  }
  response_->set_hash(hash);
  response_->set_kind(header_->kind());
  parts_.log->Info("psf_loaded", {{"kind", WarmKindName(kind_)},
                                  {"hash", hash},
                                  {"name", name},
                                  {"pinned", header_->pin()},
                                  {"identity", caller_.name}});
  return absl::OkStatus();
}

}  // namespace spexd
