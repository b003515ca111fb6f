#include "client/grpc_connection.h"

#include <grpcpp/grpcpp.h>

#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "core/base/status_macros.h"
#include "spexd/v1/extraction.grpc.pb.h"
#include "spexd/v1/registry.grpc.pb.h"
#include "spexd/v1/rpc_details.pb.h"

namespace spexd::client {
namespace {

using std::chrono::milliseconds;

std::optional<milliseconds> RetryDelay(const grpc::Status& status, const grpc::ClientContext& context) {
  v1::RpcStatus details;
  if (details.ParseFromString(status.error_details())) {
    for (const google::protobuf::Any& any : details.details()) {
      v1::RetryInfo info;
      if (absl::EndsWith(any.type_url(), "/google.rpc.RetryInfo") && info.ParseFromString(any.value())) {
        return milliseconds(info.retry_delay().seconds() * 1000 + info.retry_delay().nanos() / 1000000);
      }
    }
  }
  const auto& trailers = context.GetServerTrailingMetadata();
  const auto pushback = trailers.find("grpc-retry-pushback-ms");
  int64_t value = 0;
  if (pushback != trailers.end() &&
      absl::SimpleAtoi(absl::string_view(pushback->second.data(), pushback->second.size()), &value) &&
      value >= 0) {
    return milliseconds(value);
  }
  return std::nullopt;
}

// gRPC's codes are Abseil's.
absl::Status ToStatus(const grpc::Status& status, const std::string& address) {
  if (status.ok()) return absl::OkStatus();
  const auto code = static_cast<absl::StatusCode>(status.error_code());
  if (code == absl::StatusCode::kUnavailable) {
    return absl::UnavailableError(absl::StrCat("spexd at ", address, ": ", status.error_message()));
  }
  return absl::Status(code, status.error_message());
}

void SetDeadline(grpc::ClientContext* context, const Connection::Deadline& deadline) {
  if (deadline.has_value()) context->set_deadline(*deadline);
}

class GrpcExtractStream : public ExtractStream {
 public:
  GrpcExtractStream(v1::Extraction::Stub* stub, std::string address, const Connection::Deadline& deadline)
      : address_(std::move(address)) {
    SetDeadline(&context_, deadline);
    stream_ = stub->Extract(&context_);
  }
  ~GrpcExtractStream() override {
    if (finished_) return;
    context_.TryCancel();
    stream_->Finish();
  }

  bool Write(const v1::ExtractRequest& request) override { return stream_->Write(request); }
  bool WritesDone() override { return stream_->WritesDone(); }
  bool Read(v1::ExtractEvent* event) override { return stream_->Read(event); }
  CallResult Finish() override {
    finished_ = true;
    const grpc::Status status = stream_->Finish();
    return {ToStatus(status, address_), RetryDelay(status, context_)};
  }
  void Cancel() override { context_.TryCancel(); }

 private:
  const std::string address_;
  grpc::ClientContext context_;
  std::unique_ptr<grpc::ClientReaderWriter<v1::ExtractRequest, v1::ExtractEvent>> stream_;
  bool finished_ = false;
};

class GrpcConnection : public Connection {
 public:
  explicit GrpcConnection(const std::string& address) : address_(address) {
    grpc::ChannelArguments arguments;
    // Retries are ours: a repeated upload must start from its first byte.
    arguments.SetInt(GRPC_ARG_ENABLE_RETRIES, 0);
    arguments.SetInt(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, 100);
    arguments.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, 2000);
    // Makes an own connection to the server; otherwise gRPC lets all channels of a process share one.
    arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
    // A web proxy of the environment has no business between a worker and its server.
    arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
    const auto channel = grpc::CreateCustomChannel(address, grpc::InsecureChannelCredentials(), arguments);
    extraction_ = v1::Extraction::NewStub(channel);
    registry_ = v1::PsfRegistry::NewStub(channel);
  }

  std::unique_ptr<ExtractStream> Extract(Deadline deadline) override {
    return std::make_unique<GrpcExtractStream>(extraction_.get(), address_, deadline);
  }

  absl::StatusOr<v1::Capabilities> GetCapabilities(Deadline deadline) override {
    grpc::ClientContext context;
    SetDeadline(&context, deadline);
    v1::Capabilities response;
    SPEXD_RETURN_IF_ERROR(
        ToStatus(extraction_->GetCapabilities(&context, v1::GetCapabilitiesRequest(), &response), address_));
    return response;
  }

  absl::StatusOr<v1::PsfInfo> LoadPsf(const v1::LoadPsfHeader& header, const PieceSource& pieces,
                                      Deadline deadline) override {
    grpc::ClientContext context;
    SetDeadline(&context, deadline);
    v1::PsfInfo response;
    const auto writer = registry_->LoadPsf(&context, &response);
    v1::LoadPsfRequest request;
    *request.mutable_header() = header;
    bool open = writer->Write(request);
    absl::Status local;
    while (open && header.has_upload()) {
      absl::StatusOr<std::string> piece = pieces();
      if (!piece.ok()) {
        local = piece.status();
        context.TryCancel();
        break;
      }
      if (piece->empty()) break;
      request.set_payload(*std::move(piece));
      open = writer->Write(request);
    }
    writer->WritesDone();
    const absl::Status status = ToStatus(writer->Finish(), address_);
    if (!local.ok()) return local;
    if (!status.ok()) return status;
    return response;
  }

  absl::StatusOr<v1::ListPsfsResponse> ListPsfs(Deadline deadline) override {
    grpc::ClientContext context;
    SetDeadline(&context, deadline);
    v1::ListPsfsResponse response;
    SPEXD_RETURN_IF_ERROR(
        ToStatus(registry_->ListPsfs(&context, v1::ListPsfsRequest(), &response), address_));
    return response;
  }

  absl::Status UnloadPsf(const std::string& hash, Deadline deadline) override {
    grpc::ClientContext context;
    SetDeadline(&context, deadline);
    v1::UnloadPsfRequest request;
    request.set_hash(hash);
    v1::UnloadPsfResponse response;
    return ToStatus(registry_->UnloadPsf(&context, request, &response), address_);
  }

 private:
  const std::string address_;
  std::unique_ptr<v1::Extraction::Stub> extraction_;
  std::unique_ptr<v1::PsfRegistry::Stub> registry_;
};

}  // namespace

std::unique_ptr<Connection> MakeGrpcConnection(const std::string& address) {
  return std::make_unique<GrpcConnection>(address);
}

}  // namespace spexd::client
