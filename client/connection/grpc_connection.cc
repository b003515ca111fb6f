#include "client/connection/grpc_connection.h"

#include <grpcpp/grpcpp.h>

#include <functional>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "client/connection/credentials.h"
#include "client/connection/grpc_call.h"
#include "client/connection/health_check.h"
#include "core/base/status_macros.h"
#include "core/base/threads/mutex.h"
#include "core/base/trace_context.h"
#include "spexd/v1/analysis.grpc.pb.h"
#include "spexd/v1/extraction.grpc.pb.h"
#include "spexd/v1/jobs.grpc.pb.h"
#include "spexd/v1/registry.grpc.pb.h"

namespace spexd::client {
namespace {

// A stream of a call. The destructor cancels the call unless it has finished.
template <typename Base, typename Stream>
class GrpcStream : public Base {
 public:
  ~GrpcStream() override {
    if (finished_) return;
    call_.Cancel();
    stream_->Finish();
  }
  void Cancel() override { call_.Cancel(); }

 protected:
  GrpcStream(const std::string& address, const CallMetadata& metadata, const Connection::Deadline& deadline)
      : call_(address, metadata, deadline) {}
  CallResult End() {
    finished_ = true;
    return call_.ResultOf(stream_->Finish());
  }

  GrpcCall call_;
  std::unique_ptr<Stream> stream_;

 private:
  bool finished_ = false;
};

template <typename Request>
class GrpcJobStream
    : public GrpcStream<JobStream<Request>, grpc::ClientReaderWriter<Request, v1::ExtractEvent>> {
 public:
  // `begin`: begins the call on the stub.
  template <typename Begin>
  GrpcJobStream(const Begin& begin, const std::string& address, const CallMetadata& metadata,
                const Connection::Deadline& deadline)
      : GrpcJobStream::GrpcStream(address, metadata, deadline) {
    this->stream_ = begin(this->call_.context());
  }
  bool Write(const Request& request) override { return this->stream_->Write(request); }
  bool WritesDone() override { return this->stream_->WritesDone(); }
  bool Read(v1::ExtractEvent* event) override { return this->stream_->Read(event); }
  CallResult Finish() override { return this->End(); }
};

class GrpcSubmitStream : public GrpcStream<SubmitStream, grpc::ClientWriter<v1::SubmitRequest>> {
 public:
  GrpcSubmitStream(v1::Jobs::Stub* stub, const std::string& address, const CallMetadata& metadata,
                   const Connection::Deadline& deadline)
      : GrpcStream(address, metadata, deadline) {
    stream_ = stub->Submit(call_.context(), &reply_);
  }
  bool Write(const v1::SubmitRequest& request) override { return stream_->Write(request); }
  bool WritesDone() override { return stream_->WritesDone(); }
  CallResult Finish(v1::SubmitReply* reply) override {
    CallResult result = End();
    *reply = reply_;
    return result;
  }

 private:
  v1::SubmitReply reply_;
};

class GrpcWatchStream : public GrpcStream<WatchStream, grpc::ClientReader<v1::WatchEvent>> {
 public:
  GrpcWatchStream(v1::Jobs::Stub* stub, const v1::WatchRequest& request, const std::string& address,
                  const CallMetadata& metadata, const Connection::Deadline& deadline)
      : GrpcStream(address, metadata, deadline) {
    stream_ = stub->Watch(call_.context(), request);
  }
  bool Read(v1::WatchEvent* event) override { return stream_->Read(event); }
  CallResult Finish() override { return End(); }
};

std::shared_ptr<grpc::Channel> MakeChannel(const Endpoint& server,
                                           const std::shared_ptr<grpc::ChannelCredentials>& credentials,
                                           const PingTimes& pings) {
  grpc::ChannelArguments arguments;
  // gRPC's retries are off, because a repeated upload must start from its first byte. attempts.h retries.
  arguments.SetInt(GRPC_ARG_ENABLE_RETRIES, 0);
  arguments.SetInt(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, 100);
  arguments.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, 2000);
  // Gives the channel a connection of its own; otherwise all channels of a process share one.
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  // Ignores a web proxy that the environment sets.
  arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIME_MS, static_cast<int>(pings.interval.count()));
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, static_cast<int>(pings.timeout.count()));
  // By default gRPC stops after two pings without data, but a client that waits for results sends none.
  arguments.SetInt(GRPC_ARG_HTTP2_MAX_PINGS_WITHOUT_DATA, 0);
  // The certificate of an address that was looked up has the name that was looked up.
  if (!server.tls_name.empty()) arguments.SetSslTargetNameOverride(server.tls_name);
  return grpc::CreateCustomChannel(server.target, credentials, arguments);
}

// A channel and the stubs of its services.
struct Services {
  explicit Services(std::shared_ptr<grpc::Channel> to_server)
      : channel(std::move(to_server)),
        analysis(v1::Analysis::NewStub(channel)),
        extraction(v1::Extraction::NewStub(channel)),
        registry(v1::PsfRegistry::NewStub(channel)),
        jobs(v1::Jobs::NewStub(channel)) {}

  const std::shared_ptr<grpc::Channel> channel;
  const std::unique_ptr<v1::Analysis::Stub> analysis;
  const std::unique_ptr<v1::Extraction::Stub> extraction;
  const std::unique_ptr<v1::PsfRegistry::Stub> registry;
  const std::unique_ptr<v1::Jobs::Stub> jobs;
};

class GrpcConnection : public Connection {
 public:
  GrpcConnection(const Endpoint& server, const std::shared_ptr<grpc::ChannelCredentials>& credentials,
                 CallMetadata metadata, const PingTimes& pings = {})
      : address_(server.target),
        metadata_(std::move(metadata)),
        make_channel_([=] { return MakeChannel(server, credentials, pings); }),
        services_(std::make_shared<Services>(make_channel_())) {}

  const std::string& address() const override { return address_; }

  absl::Status CheckServing(Deadline deadline, const std::stop_token& stop) override {
    GrpcCall call = NewCall(deadline);
    const std::stop_callback cancel(stop, [&call] { call.Cancel(); });
    const HealthAnswer answer = CheckHealth(Now()->channel, call.context());
    const auto unavailable = [this](const std::string& why) {
      return absl::UnavailableError(absl::StrCat("spexd at ", address_, ": ", why));
    };
    if (stop.stop_requested()) return absl::CancelledError("cancelled");
    if (answer.health == Health::kNotServing) return unavailable("NOT_SERVING");
    if (answer.status.error_code() == grpc::StatusCode::UNAVAILABLE) return call.StatusOf(answer.status);
    if (answer.status.error_code() == grpc::StatusCode::DEADLINE_EXCEEDED) return unavailable("no answer");
    return absl::OkStatus();
  }

  std::unique_ptr<ExtractStream> Extract(Deadline deadline) override {
    const auto begin = [this](grpc::ClientContext* context) { return Now()->extraction->Extract(context); };
    return std::make_unique<GrpcJobStream<v1::ExtractRequest>>(begin, address_, metadata_, deadline);
  }

  std::unique_ptr<AnalyseStream> Analyse(Deadline deadline) override {
    const auto begin = [this](grpc::ClientContext* context) { return Now()->analysis->Analyse(context); };
    return std::make_unique<GrpcJobStream<v1::AnalyseRequest>>(begin, address_, metadata_, deadline);
  }

  absl::StatusOr<v1::Capabilities> GetCapabilities(Deadline deadline) override {
    return Unary<v1::Capabilities>(*Now()->extraction, &v1::Extraction::Stub::GetCapabilities,
                                   v1::GetCapabilitiesRequest(), deadline);
  }

  absl::StatusOr<v1::PsfInfo> LoadPsf(const v1::LoadPsfHeader& header, const PieceSource& pieces,
                                      Deadline deadline) override {
    GrpcCall call = NewCall(deadline);
    v1::PsfInfo response;
    const auto writer = Now()->registry->LoadPsf(call.context(), &response);
    v1::LoadPsfRequest request;
    *request.mutable_header() = header;
    bool open = writer->Write(request);
    absl::Status local;
    while (open && header.has_upload()) {
      absl::StatusOr<std::string> piece = pieces();
      if (!piece.ok()) {
        local = piece.status();
        call.Cancel();
        break;
      }
      if (piece->empty()) break;
      request.set_payload(*std::move(piece));
      open = writer->Write(request);
    }
    writer->WritesDone();
    const absl::Status status = call.StatusOf(writer->Finish());
    if (!local.ok()) return local;
    if (!status.ok()) return status;
    return response;
  }

  absl::StatusOr<v1::ListPsfsResponse> ListPsfs(const v1::ListPsfsRequest& request,
                                                Deadline deadline) override {
    return Unary<v1::ListPsfsResponse>(*Now()->registry, &v1::PsfRegistry::Stub::ListPsfs, request, deadline);
  }

  absl::Status UnloadPsf(const std::string& hash, v1::WarmKind kind, Deadline deadline) override {
    v1::UnloadPsfRequest request;
    request.set_hash(hash);
    request.set_kind(kind);
    return Unary<v1::UnloadPsfResponse>(*Now()->registry, &v1::PsfRegistry::Stub::UnloadPsf, request,
                                        deadline)
        .status();
  }

  std::unique_ptr<SubmitStream> Submit(Deadline deadline) override {
    return std::make_unique<GrpcSubmitStream>(Now()->jobs.get(), address_, metadata_, deadline);
  }

  std::unique_ptr<WatchStream> Watch(const v1::WatchRequest& request, Deadline deadline) override {
    return std::make_unique<GrpcWatchStream>(Now()->jobs.get(), request, address_, metadata_, deadline);
  }

  absl::StatusOr<v1::JobRecord> GetJob(const std::string& job_id, Deadline deadline,
                                       const std::stop_token& stop) override {
    v1::GetJobRequest request;
    request.set_job_id(job_id);
    return Unary<v1::JobRecord>(*Now()->jobs, &v1::Jobs::Stub::GetJob, request, deadline, stop);
  }

  absl::StatusOr<v1::ListJobsResponse> ListJobs(const v1::ListJobsRequest& request, Deadline deadline,
                                                const std::stop_token& stop) override {
    return Unary<v1::ListJobsResponse>(*Now()->jobs, &v1::Jobs::Stub::ListJobs, request, deadline, stop);
  }

  absl::StatusOr<v1::JobRecord> CancelJob(const std::string& job_id, Deadline deadline) override {
    v1::CancelJobRequest request;
    request.set_job_id(job_id);
    return Unary<v1::JobRecord>(*Now()->jobs, &v1::Jobs::Stub::CancelJob, request, deadline);
  }

  absl::StatusOr<v1::JobRecord> Ack(const std::string& job_id, uint64_t upto, Deadline deadline,
                                    const std::stop_token& stop) override {
    v1::AckRequest request;
    request.set_job_id(job_id);
    request.set_upto(upto);
    return Unary<v1::JobRecord>(*Now()->jobs, &v1::Jobs::Stub::Ack, request, deadline, stop);
  }

 private:
  GrpcCall NewCall(const Deadline& deadline) const { return {address_, metadata_, deadline}; }

  // Returns the services for a call that begins now. A channel that could not connect fails further calls, in
  // gRPC 1.51 for up to 30 s, even if the server listens by then. A new channel connects at once.
  std::shared_ptr<Services> Now() {
    const MutexLock lock(&mutex_);
    if (services_->channel->GetState(false) == GRPC_CHANNEL_TRANSIENT_FAILURE) {
      services_ = std::make_shared<Services>(make_channel_());
    }
    return services_;
  }

  // Makes a call with one request and one response.
  template <typename Response, typename Request, typename Stub>
  absl::StatusOr<Response> Unary(
      Stub& stub, grpc::Status (Stub::*method)(grpc::ClientContext*, const Request&, Response*),
      const Request& request, const Deadline& deadline, const std::stop_token& stop = {}) const {
    GrpcCall call = NewCall(deadline);
    const std::stop_callback cancel(stop, [&call] { call.Cancel(); });
    Response response;
    SPEXD_RETURN_IF_ERROR(call.StatusOf((stub.*method)(call.context(), request, &response)));
    return response;
  }

  const std::string address_;
  const CallMetadata metadata_;
  const std::function<std::shared_ptr<grpc::Channel>()> make_channel_;
  Mutex mutex_;
  std::shared_ptr<Services> services_ ABSL_GUARDED_BY(mutex_);
};

// Reads the files that `server` names and returns a connector. The connector refuses to send a token in plain
// text to another machine.
absl::StatusOr<ServerDirectory::Connector> MakeConnector(const ServerAddress& server) {
  SPEXD_ASSIGN_OR_RETURN(const auto credentials, MakeCredentials(server));
  CallMetadata metadata;
  SPEXD_ASSIGN_OR_RETURN(metadata.token, ReadToken(server.token_file));
  metadata.traceparent = SentTraceparent(server.traceparent);
  const bool plain_token = !metadata.token.empty() && server.tls_ca.empty();
  return [=](const Endpoint& endpoint) -> absl::StatusOr<std::unique_ptr<Connection>> {
    if (plain_token && !StaysOnThisMachine(endpoint.target)) {
      return absl::InvalidArgumentError(absl::StrCat("the token would go to ", endpoint.target,
                                                     " in plain text; give the server's TLS authorities"));
    }
    return std::make_unique<GrpcConnection>(endpoint, credentials, metadata);
  };
}

}  // namespace

std::unique_ptr<Connection> MakeGrpcConnection(const std::string& address, const PingTimes& pings) {
  return std::make_unique<GrpcConnection>(Endpoint{address, ""}, grpc::InsecureChannelCredentials(),
                                          CallMetadata(), pings);
}

absl::StatusOr<std::vector<std::unique_ptr<Connection>>> ConnectAll(const ServerAddress& server) {
  SPEXD_ASSIGN_OR_RETURN(const ServerDirectory::Connector connect, MakeConnector(server));
  SPEXD_ASSIGN_OR_RETURN(const std::vector<Endpoint> endpoints, FindServers(server.address));
  std::vector<std::unique_ptr<Connection>> connections;
  for (const Endpoint& endpoint : endpoints) {
    SPEXD_ASSIGN_OR_RETURN(connections.emplace_back(), connect(endpoint));
  }
  return connections;
}

absl::StatusOr<std::unique_ptr<ServerDirectory>> OpenDirectory(const ServerAddress& server,
                                                               Resolver resolve) {
  SPEXD_ASSIGN_OR_RETURN(ServerDirectory::Connector connect, MakeConnector(server));
  return std::make_unique<ServerDirectory>(server.address, std::move(connect), std::move(resolve));
}

std::vector<Connection*> Pointers(const std::vector<std::unique_ptr<Connection>>& connections) {
  std::vector<Connection*> pointers;
  for (const auto& connection : connections) pointers.push_back(connection.get());
  return pointers;
}

absl::StatusOr<std::unique_ptr<Connection>> Connect(const ServerAddress& server) {
  SPEXD_ASSIGN_OR_RETURN(std::vector<std::unique_ptr<Connection>> connections, ConnectAll(server));
  if (connections.size() == 1) return std::move(connections[0]);
  return absl::InvalidArgumentError(absl::StrCat("server address ", server.address, " names ",
                                                 connections.size(), " servers; give one of them"));
}

}  // namespace spexd::client
