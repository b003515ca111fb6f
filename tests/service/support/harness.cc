#include "tests/service/support/harness.h"

#include <grpcpp/generic/generic_stub.h>

#include <chrono>
#include <thread>

#include "absl/strings/str_cat.h"
#include "core/base/digest/sha256.h"
#include "server/server.h"
#include "tests/service/support/scrape.h"

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

Answer Ended(const grpc::Status& status, const grpc::ClientContext& context) {
  Answer answer;
  answer.status = status;
  for (const auto& [key, value] : context.GetServerTrailingMetadata())
    answer.trailers.emplace(std::string(key.data(), key.size()), std::string(value.data(), value.size()));
  return answer;
}

ServiceTest::ServiceTest() {
  options_.listen = "127.0.0.1:0";
  options_.http = "127.0.0.1:0";
  options_.allow_roots = {folder_.path()};
  options_.grace_seconds = 60;
}

ServiceTest::~ServiceTest() = default;

void ServiceTest::Start(std::unique_ptr<Engine> engine) {
  server_.reset();  // two servers would write to log_
  if (engine == nullptr) engine = std::make_unique<FakeEngine>(engine_);
  auto server = Server::Start(options_, std::move(engine), MakeStreamSink(&log_));
  ASSERT_TRUE(server.ok()) << server.status();
  server_ = *std::move(server);
}

void ServiceTest::BecomeUser(const std::vector<std::string>& shares) {
  const std::string user = "user submit,read ";
  user_token_ = "token of the user";
  std::string text = absl::StrCat(user, "token sha256:", Sha256Hex(user_token_), "\n");
  for (const std::string& share : shares) absl::StrAppend(&text, user, share, "\n");
  WriteText(folder_ / "identities", text);
  options_.identities = folder_ / "identities";
}

void ServiceTest::ShowCaller(grpc::ClientContext* context) const {
  if (!user_token_.empty()) context->AddMetadata("authorization", absl::StrCat("Bearer ", user_token_));
}

std::shared_ptr<grpc::Channel> ServiceTest::NewChannel() const {
  grpc::ChannelArguments arguments;
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);  // its own connection
  return grpc::CreateCustomChannel(server_->grpc_address(), grpc::InsecureChannelCredentials(), arguments);
}

Answer ServiceTest::Finish(Stream* stream, grpc::ClientContext* context) {
  std::vector<v1::ExtractEvent> events;
  v1::ExtractEvent event;
  while (stream->Read(&event)) events.push_back(event);
  Answer answer = Ended(stream->Finish(), *context);
  answer.events = std::move(events);
  return answer;
}

Answer ServiceTest::Extract(const v1::JobHeader& header, const std::vector<UploadData>& uploads,
                            grpc::ClientContext* context) {
  grpc::ClientContext own;
  if (context == nullptr) context = &own;
  ShowCaller(context);
  const auto stub = NewStub();
  const auto stream = stub->Extract(context);
  SendHeader(stream.get(), header);
  for (const UploadData& upload : uploads) SendUpload(stream.get(), upload);
  stream->WritesDone();
  return Finish(stream.get(), context);
}

std::unique_ptr<ServiceTest::Call> ServiceTest::Send(const v1::JobHeader& header,
                                                     std::chrono::milliseconds timeout) const {
  auto call = std::make_unique<Call>();
  ShowCaller(&call->context);
  call->context.set_deadline(std::chrono::system_clock::now() + timeout);
  call->stub = NewStub();
  call->stream = call->stub->Extract(&call->context);
  SendHeader(call->stream.get(), header);
  return call;
}

std::unique_ptr<ServiceTest::Call> ServiceTest::Begin(const v1::JobHeader& header,
                                                      std::chrono::milliseconds timeout) const {
  auto call = Send(header, timeout);
  EXPECT_TRUE(call->stream->Read(&call->accepted));
  EXPECT_TRUE(call->accepted.has_accepted());
  return call;
}

void ServiceTest::CloseGateAfter(int bundles) {
  engine_->Set([&](auto& b) {
    b.gate_closed = true;
    b.open_bundles = bundles;
  });
}

void ServiceTest::OpenGate() {
  engine_->Set([](auto& b) { b.gate_closed = false; });
}

bool ServiceTest::AtGate(int jobs) {
  return engine_->WaitUntil([&](const auto& seen) { return seen.at_gate == jobs; });
}

std::unique_ptr<ServiceTest::Call> ServiceTest::HoldJobAtGate() {
  engine_->Set([](auto& b) { b.gate_closed = true; });
  auto job = Send(PathHeader());
  job->stream->WritesDone();
  return AtGate(1) ? std::move(job) : nullptr;
}

Answer ServiceTest::LetGo(Call* job) {
  OpenGate();
  return End(job);
}

std::pair<int, std::string> ServiceTest::Get(const std::string& path) const {
  return HttpGet(absl::StrCat("127.0.0.1:", server_->http_port()), path);
}

double ServiceTest::Metric(const std::string& series) const {
  return ScrapedMetric(absl::StrCat("127.0.0.1:", server_->http_port()), series);
}

v1::Capabilities ServiceTest::Status() const {
  grpc::ClientContext context;
  ShowCaller(&context);
  v1::Capabilities status;
  EXPECT_TRUE(NewStub()->GetCapabilities(&context, v1::GetCapabilitiesRequest(), &status).ok());
  return status;
}

int ServiceTest::Health(const std::string& service) const {
  // Encodes and decodes HealthCheckRequest { string service = 1; } and HealthCheckResponse { ServingStatus
  // status = 1; } by hand.
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

}  // namespace spexd::testing
