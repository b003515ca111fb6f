#include "tests/service/harness.h"

#include <grpcpp/generic/generic_stub.h>
#include <httplib.h>

#include <chrono>
#include <thread>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

namespace spexd::testing {

std::vector<const v1::BundlePart*> Answer::parts() const {
  std::vector<const v1::BundlePart*> parts;
  for (const v1::ExtractEvent& event : events) {
    if (event.has_bundle()) parts.push_back(&event.bundle());
  }
  return parts;
}

std::vector<std::string> Answer::states() const {
  std::vector<std::string> states;
  for (const v1::ExtractEvent& event : events) {
    if (!event.has_progress()) continue;
    if (states.empty() || states.back() != event.progress().state())
      states.push_back(event.progress().state());
  }
  return states;
}

const v1::JobSummary* Answer::summary() const {
  for (const v1::ExtractEvent& event : events) {
    if (event.has_summary() && event.summary().last()) return &event.summary();
  }
  return nullptr;
}

const v1::FrameInfo* Answer::frame_info() const {
  for (const v1::ExtractEvent& event : events) {
    if (event.has_frame_info()) return &event.frame_info();
  }
  return nullptr;
}

double Answer::retry_seconds() const {
  v1::RpcStatus details;
  if (!details.ParseFromString(status.error_details())) return -1;
  for (const auto& any : details.details()) {
    v1::RetryInfo info;
    if (any.type_url() != "type.googleapis.com/google.rpc.RetryInfo" || !info.ParseFromString(any.value()))
      continue;
    return static_cast<double>(info.retry_delay().seconds()) + 1e-9 * info.retry_delay().nanos();
  }
  return -1;
}

ServiceTest::ServiceTest() {
  options_.listen = "127.0.0.1:0";
  options_.http = "127.0.0.1:0";
  options_.allow_roots = {folder_.path()};
  options_.grace_seconds = 60;
  WritePsfFile(folder_ / "psf.fits");
  WritePreprocFile(folder_ / "preproc.fits");
}

void ServiceTest::Start(std::unique_ptr<Engine> engine) {
  if (engine == nullptr) engine = std::make_unique<FakeEngine>(engine_);
  auto server = Server::Start(options_, std::move(engine), MakeStreamSink(&log_));
  ASSERT_TRUE(server.ok()) << server.status();
  server_ = *std::move(server);
}

std::shared_ptr<grpc::Channel> ServiceTest::NewChannel() const {
  grpc::ChannelArguments arguments;
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);  // a connection of its own
  return grpc::CreateCustomChannel(server_->grpc_address(), grpc::InsecureChannelCredentials(), arguments);
}

v1::JobHeader ServiceTest::PathHeader() const {
  v1::JobHeader header;
  header.mutable_image()->set_path(folder_ / "preproc.fits");
  header.mutable_psf()->set_path(folder_ / "psf.fits");
  header.set_bundle_size(4);
  return header;
}

v1::JobHeader ServiceTest::RawHeader() const {
  v1::JobHeader header = PathHeader();
  v1::RawImage* raw = header.mutable_image()->mutable_raw();
  raw->set_name("raw arrays");
  raw->set_rows(kRows);
  raw->set_columns(kColumns);
  return header;
}

void ServiceTest::SendHeader(Stream* stream, const v1::JobHeader& header) {
  v1::ExtractRequest request;
  *request.mutable_header() = header;
  stream->Write(request);
}

void ServiceTest::SendUpload(Stream* stream, const UploadData& upload) {
  v1::ExtractRequest request;
  for (size_t sent = 0; sent < upload.bytes.size(); sent += upload.chunk) {
    request.mutable_chunk()->set_input(upload.input);
    request.mutable_chunk()->set_offset(sent);
    request.mutable_chunk()->set_payload(upload.bytes.substr(sent, upload.chunk));
    if (!stream->Write(request)) return;
  }
  request.mutable_end()->set_input(upload.input);
  request.mutable_end()->set_sha256(upload.end_sha256);
  stream->Write(request);
}

Answer ServiceTest::Finish(Stream* stream, grpc::ClientContext* context) {
  Answer answer;
  v1::ExtractEvent event;
  while (stream->Read(&event)) answer.events.push_back(event);
  answer.status = stream->Finish();
  for (const auto& [key, value] : context->GetServerTrailingMetadata()) {
    answer.trailers.emplace(std::string(key.data(), key.size()), std::string(value.data(), value.size()));
  }
  return answer;
}

Answer ServiceTest::Extract(const v1::JobHeader& header, const std::vector<UploadData>& uploads,
                            grpc::ClientContext* context) {
  grpc::ClientContext own;
  if (context == nullptr) context = &own;
  const auto stub = NewStub();
  const auto stream = stub->Extract(context);
  SendHeader(stream.get(), header);
  for (const UploadData& upload : uploads) SendUpload(stream.get(), upload);
  stream->WritesDone();
  return Finish(stream.get(), context);
}

std::pair<int, std::string> ServiceTest::Get(const std::string& path) const {
  httplib::Client client("127.0.0.1", server_->http_port());
  const auto result = client.Get(path.c_str());
  if (!result) return {-1, ""};
  return {result->status, result->body};
}

double ServiceTest::Metric(const std::string& series) const {
  const std::string body = Get("/metrics").second;
  for (absl::string_view line : absl::StrSplit(body, '\n')) {
    if (line.size() <= series.size() || line.substr(0, series.size()) != series || line[series.size()] != ' ')
      continue;
    double value = 0;
    if (absl::SimpleAtod(line.substr(series.size() + 1), &value)) return value;
  }
  return -1;
}

v1::Capabilities ServiceTest::Status() const {
  grpc::ClientContext context;
  v1::Capabilities status;
  EXPECT_TRUE(NewStub()->GetCapabilities(&context, v1::GetCapabilitiesRequest(), &status).ok());
  return status;
}

int ServiceTest::Health(const std::string& service) const {
  // HealthCheckRequest { string service = 1; } and HealthCheckResponse { ServingStatus status = 1; }, by
  // hand.
  std::string request;
  if (!service.empty()) request = "\x0a" + std::string(1, static_cast<char>(service.size())) + service;
  grpc::GenericStub stub(NewChannel());
  grpc::ClientContext context;
  grpc::CompletionQueue queue;
  grpc::Slice slice(request);
  grpc::ByteBuffer message(&slice, 1), response;
  grpc::Status status;
  const auto call = stub.PrepareUnaryCall(&context, "/grpc.health.v1.Health/Check", message, &queue);
  call->StartCall();
  call->Finish(&response, &status, &queue);
  void* tag = nullptr;
  bool ok = false;
  queue.Next(&tag, &ok);
  std::vector<grpc::Slice> slices;
  if (!status.ok() || !response.Dump(&slices).ok()) return -1;
  std::string bytes;
  for (const grpc::Slice& part : slices)
    bytes.append(reinterpret_cast<const char*>(part.begin()), part.size());
  return bytes.size() < 2 ? 0 : bytes[1];
}

bool ServiceTest::Eventually(const std::function<bool()>& condition) {
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::minutes(1);
  while (!condition()) {
    if (std::chrono::steady_clock::now() > deadline) return false;
    std::this_thread::yield();
  }
  return true;
}

}  // namespace spexd::testing
