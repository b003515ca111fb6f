// Queueing, cancellation, deadlines, draining, health, metrics. An engine with a gate makes each state last.
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <atomic>
#include <thread>

#include "nlohmann/json.hpp"
#include "server/front/grpc_probe.h"
#include "server/server.h"
#include "tests/service/support/harness.h"
#include "tests/support/matchers.h"

namespace spexd::testing {
namespace {

using grpc::StatusCode;

class LifecycleTest : public ServiceTest {
 protected:
  // Does what Begin does, for a job without further input.
  std::unique_ptr<Call> BeginPath(std::chrono::milliseconds timeout = std::chrono::hours(1)) {
    auto call = Begin(PathHeader(), timeout);
    call->stream->WritesDone();
    return call;
  }
  bool Cancelled(int jobs) {
    return engine_->WaitUntil([&](const auto& seen) { return seen.cancelled == jobs; });
  }
  double Cancellations(const std::string& stage) {
    return Metric("spexd_cancellations_total{stage=\"" + stage + "\"}");
  }
};

TEST_F(LifecycleTest, RefusesWithARetryDelayWhenTheQueueIsFull) {
  options_.max_running_jobs = 1;
  options_.max_queued_jobs = 1;
  Start();
  CloseGateAfter(0);
  const auto running = BeginPath();
  ASSERT_TRUE(AtGate(1));
  const auto waiting = BeginPath();
  EXPECT_EQ(waiting->accepted.accepted().queue_position(), 1u);
  const Answer refused = Extract(PathHeader());
  EXPECT_EQ(refused.status.error_code(), StatusCode::RESOURCE_EXHAUSTED) << refused.message();
  EXPECT_TRUE(refused.events.empty());
  EXPECT_GE(refused.retry_seconds(), 0.5);
  EXPECT_EQ(Status().jobs_running(), 1u);
  EXPECT_EQ(Status().jobs_queued(), 1u);
  EXPECT_EQ(Metric("spexd_queue_jobs"), 1);
  EXPECT_EQ(Metric("spexd_jobs_in_flight"), 1);
  EXPECT_EQ(Metric("spexd_rejections_total{reason=\"queue_full\"}"), 1);
  OpenGate();
  EXPECT_TRUE(End(running.get()).status.ok());
  EXPECT_TRUE(End(waiting.get()).status.ok());
}

TEST_F(LifecycleTest, StopsAJobThatItsClientCancels) {
  Start();
  CloseGateAfter(1);
  const auto call = BeginPath();
  ASSERT_TRUE(AtGate(1));
  call->context.TryCancel();
  EXPECT_EQ(End(call.get()).status.error_code(), StatusCode::CANCELLED);
  EXPECT_TRUE(Cancelled(1));
  EXPECT_EQ(engine_->seen().bundles, 1);
  EXPECT_TRUE(Eventually([&] { return Cancellations("extracting") == 1; }));
}

TEST_F(LifecycleTest, StopsAJobWhoseConnectionDies) {
  Start();
  CloseGateAfter(1);
  {
    const auto call = BeginPath();
    ASSERT_TRUE(AtGate(1));
    // Stub, stream and channel disappear without a message to the server's handler.
  }
  EXPECT_TRUE(Cancelled(1));
  EXPECT_TRUE(Eventually([&] { return Status().jobs_running() == 0; }));
}

TEST_F(LifecycleTest, StopsAJobWhoseDeadlinePasses) {
  Start();
  CloseGateAfter(0);
  const auto call = BeginPath(std::chrono::seconds(10));
  EXPECT_EQ(End(call.get()).status.error_code(), StatusCode::DEADLINE_EXCEEDED);
  EXPECT_TRUE(Eventually([&] { return Metric("spexd_jobs_total{outcome=\"deadline_exceeded\"}") == 1; }));
  EXPECT_EQ(engine_->seen().running, 0);
}

TEST_F(LifecycleTest, LetsGoOfAJobThatIsCancelledInTheQueueOrWhileItIsReceived) {
  options_.max_running_jobs = 1;
  Start();
  CloseGateAfter(0);
  const auto running = BeginPath();
  ASSERT_TRUE(AtGate(1));
  const auto waiting = BeginPath();
  const auto receiving = Begin(RawHeader());
  waiting->context.TryCancel();
  receiving->context.TryCancel();
  EXPECT_EQ(End(waiting.get()).status.error_code(), StatusCode::CANCELLED);
  EXPECT_EQ(End(receiving.get()).status.error_code(), StatusCode::CANCELLED);
  EXPECT_TRUE(Eventually([&] { return Status().jobs_queued() == 0; }));
  EXPECT_TRUE(Eventually([&] { return Metric("spexd_jobs_total{outcome=\"cancelled\"}") == 2; }));
  EXPECT_TRUE(Eventually([&] { return Cancellations("receiving") == 1; }));
  OpenGate();
  EXPECT_TRUE(End(running.get()).status.ok());
  EXPECT_EQ(engine_->seen().extracts, 1);
}

TEST_F(LifecycleTest, AJobThatIsStillUploadingHoldsUpNobody) {
  options_.max_running_jobs = 1;
  Start();
  const auto slow = Begin(RawHeader());
  EXPECT_TRUE(Extract(PathHeader()).status.ok());
  SendUpload(slow->stream.get(), RawUpload());
  slow->stream->WritesDone();
  EXPECT_TRUE(End(slow.get()).status.ok());
}

TEST_F(LifecycleTest, AClientThatDoesNotReadHoldsUpNobody) {
  options_.max_running_jobs = 1;
  Start();
  // Far more than the client's window holds: 10 fibres of 1000 bins, 600 kB.
  grpc::ChannelArguments narrow;
  narrow.SetInt(GRPC_ARG_HTTP2_BDP_PROBE, 0);
  narrow.SetInt(GRPC_ARG_HTTP2_STREAM_LOOKAHEAD_BYTES, 65536);
  v1::JobHeader header = PathHeader();
  header.set_bundle_size(1);
  header.mutable_grid()->set_first(6000);
  header.mutable_grid()->set_step(0.04);
  header.mutable_grid()->set_count(1000);
  Call slow;
  slow.stub = v1::Extraction::NewStub(
      grpc::CreateCustomChannel(server_->grpc_address(), grpc::InsecureChannelCredentials(), narrow));
  slow.stream = slow.stub->Extract(&slow.context);
  SendHeader(slow.stream.get(), header);
  slow.stream->WritesDone();
  EXPECT_TRUE(engine_->WaitUntil([](const auto& seen) { return seen.extracts == 1 && seen.running == 0; }));
  EXPECT_TRUE(Extract(PathHeader()).status.ok());  // the only slot is free again
  EXPECT_EQ(Metric("spexd_jobs_total{outcome=\"ok\"}"), 1);
  const Answer answer = End(&slow);
  EXPECT_TRUE(answer.status.ok()) << answer.message();
  EXPECT_EQ(answer.parts().size(), 10u);
}

TEST_F(LifecycleTest, AJobWaitsUntilTheResultsOfItsReaderWereRead) {
  options_.max_running_jobs = 3;
  options_.max_result_bytes = 75000;  // the results of one job
  Start();
  CloseGateAfter(0);
  const auto first = BeginPath();
  ASSERT_TRUE(AtGate(1));
  const auto second = BeginPath(), impatient = BeginPath();
  ASSERT_TRUE(Eventually([&] { return Metric("spexd_queue_jobs") == 2; }));
  impatient->context.TryCancel();
  EXPECT_EQ(End(impatient.get()).status.error_code(), StatusCode::CANCELLED);
  EXPECT_TRUE(Eventually([&] { return Cancellations("queued") == 1; }));
  OpenGate();
  EXPECT_TRUE(End(first.get()).status.ok());
  EXPECT_TRUE(End(second.get()).status.ok());
  EXPECT_EQ(engine_->seen().max_running, 1);
  EXPECT_EQ(Metric("spexd_rejections_total{reason=\"memory\"}"), 0);
}

TEST_F(LifecycleTest, CutsOffAClientThatStalls) {
  options_.stall_seconds = 5;
  Start();
  const auto stalled = Begin(RawHeader());
  EXPECT_EQ(End(stalled.get()).status.error_code(), StatusCode::CANCELLED);
  EXPECT_TRUE(Eventually([&] { return Status().jobs_queued() == 0; }));
}

TEST_F(LifecycleTest, EndsJobsThatOutlastTheServersLimitWhetherTheyRunOrWait) {
  options_.max_running_jobs = 1;
  options_.max_job_seconds = 10;
  Start();
  CloseGateAfter(0);
  const auto running = BeginPath();
  ASSERT_TRUE(AtGate(1));
  const auto waiting = BeginPath();
  const auto receiving = Begin(RawHeader());
  for (Call* call : {running.get(), waiting.get(), receiving.get()}) {
    EXPECT_THAT(End(call).status,
                StatusIs(StatusCode::DEADLINE_EXCEEDED,
                         HasSubstr("the job took 10 seconds, the limit of --max-job-seconds")));
  }
  // The waiting job may have the slot for the moment between the first job's end and its own.
  EXPECT_TRUE(Eventually([&] { return Status().jobs_running() == 0 && Status().jobs_queued() == 0; }));
  EXPECT_EQ(Cancellations("receiving"), 1);
}

TEST_F(LifecycleTest, ServesFiftyClientsAtOnce) {
  Start();
  constexpr int kClients = 50;
  std::atomic<int> good = 0;
  std::vector<std::thread> clients;
  for (int k = 0; k < kClients; ++k) {
    clients.emplace_back([&, k] {
      const Answer answer = k % 2 ? Extract(PathHeader()) : Extract(RawHeader(), {RawUpload()});
      EXPECT_TRUE(answer.status.ok()) << answer.message();
      good += answer.status.ok() && answer.parts().size() == 3;
    });
  }
  for (std::thread& client : clients) client.join();
  EXPECT_EQ(good, kClients);
  EXPECT_LE(engine_->seen().max_running, static_cast<int>(Status().limits().max_running_jobs()));
  EXPECT_EQ(engine_->seen().prepares, 1);
  EXPECT_EQ(Metric("spexd_jobs_total{outcome=\"ok\"}"), kClients);
}

TEST_F(LifecycleTest, DrainsWithoutLosingAnAcceptedJob) {
  Start();
  CloseGateAfter(0);
  const auto running = BeginPath();
  ASSERT_TRUE(AtGate(1));
  const auto receiving = Begin(RawHeader());
  EXPECT_EQ(Health(""), 1);
  EXPECT_EQ(Health("spexd.v1.Extraction"), 1);
  EXPECT_EQ(Get("/readyz").first, 200);

  std::atomic<bool> clean = false;
  std::thread drain([&] { clean = server_->Drain(); });
  EXPECT_TRUE(Eventually([&] { return Get("/readyz").first == 503; }));
  EXPECT_TRUE(Eventually([&] { return Health("spexd.v1.Extraction") == 2; }));
  EXPECT_EQ(Get("/livez").first, 200);
  EXPECT_EQ(Metric("spexd_draining"), 1);
  EXPECT_THAT(Extract(PathHeader()).status, StatusIs(StatusCode::UNAVAILABLE, HasSubstr("draining")));
  SendUpload(receiving->stream.get(), RawUpload());
  receiving->stream->WritesDone();
  OpenGate();
  EXPECT_TRUE(End(running.get()).status.ok());
  EXPECT_TRUE(End(receiving.get()).status.ok());
  drain.join();
  EXPECT_TRUE(clean);
}

TEST_F(LifecycleTest, CancelsWhatOutlastsTheGraceTime) {
  options_.grace_seconds = 0.05;
  Start();
  CloseGateAfter(0);
  const auto running = BeginPath();
  ASSERT_TRUE(AtGate(1));
  EXPECT_FALSE(server_->Drain());
  EXPECT_FALSE(End(running.get()).status.ok());
  EXPECT_TRUE(Cancelled(1));
}

TEST_F(LifecycleTest, ShowsMetricsStatusAndAPage) {
  Start();
  ASSERT_TRUE(Extract(PathHeader()).status.ok());
  EXPECT_EQ(Metric("spexd_jobs_total{outcome=\"ok\"}"), 1);
  EXPECT_EQ(Metric("spexd_bundles_total"), 3);
  EXPECT_EQ(Metric("spexd_spectra_total"), 10);
  EXPECT_EQ(Metric("spexd_psf_cache_entries"), 1);
  EXPECT_EQ(Metric("spexd_psf_cache_misses_total{kind=\"psf\"}"), 1);
  EXPECT_EQ(Metric("spexd_psf_cache_misses_total{kind=\"grid\"}"), 1);
  EXPECT_GT(Metric("spexd_psf_cache_bytes"), 0);
  EXPECT_GT(Metric("spexd_sent_bytes_total"), 10 * 51 * 60);
  EXPECT_EQ(Metric("spexd_time_to_first_bundle_seconds_count"), 1);
  for (const char* stage : {"receive", "queue", "decode", "prepare", "spots", "solve", "model", "send"}) {
    EXPECT_EQ(Metric("spexd_stage_duration_seconds_count{stage=\"" + std::string(stage) + "\"}"), 1) << stage;
  }
  EXPECT_EQ(Metric("spexd_stage_duration_seconds_sum{stage=\"spots\"}"), 0.25);
  EXPECT_EQ(Metric("spexd_draining"), 0);
  EXPECT_EQ(Metric("spexd_build_info{version=\"" + Status().version() + "\"}"), 1);
  EXPECT_GT(Metric("process_resident_memory_bytes"), 1e6);
  EXPECT_GT(Metric("process_start_time_seconds"), 1e9);
  EXPECT_THAT(Get("/").second, HasSubstr("spexd"));
  EXPECT_EQ(Get("/nothing").first, 404);

  const v1::Capabilities status = Status();
  EXPECT_EQ(status.engines(0).kind(), "fake");
  EXPECT_TRUE(status.engines(0).runnable());
  EXPECT_EQ(status.limits().max_running_jobs(), 2u);
  EXPECT_THAT(status.allowed_roots(), ElementsAre(folder_.path()));
}

TEST_F(LifecycleTest, LogsOneJsonObjectALineWithJobAndTrace) {
  Start();
  grpc::ClientContext context;
  context.AddMetadata("traceparent", "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01");
  const Answer answer = Extract(PathHeader(), {}, &context);
  const std::string job = answer.events.at(0).accepted().job_id();
  EXPECT_TRUE(server_->Drain());
  server_.reset();
  std::istringstream lines(log_.str());
  std::vector<std::string> events;
  for (std::string line; std::getline(lines, line);) {
    const auto entry = nlohmann::json::parse(line);
    events.push_back(entry["event"]);
    if (!entry.contains("job")) continue;
    EXPECT_EQ(entry["job"], job);
    EXPECT_EQ(entry["trace_id"], "0af7651916cd43dd8448eb211c80319c");
    EXPECT_EQ(entry["span_id"], "b7ad6b7169203331");
  }
  EXPECT_THAT(events, ElementsAre("started", "audit", "job_accepted", "estimate", "job_ended", "draining",
                                  "stopped"));
}

TEST_F(LifecycleTest, ServesJobsWhoseTraceparentIsNotValidAndLogsNone) {
  Start();
  const std::string good = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
  const std::vector<std::vector<std::string>> sent = {
      {""}, {"00"}, {good + "0"}, {std::string(4000, '0')}, {"\"}\\"}, {good, good}};
  for (const std::vector<std::string>& headers : sent) {
    grpc::ClientContext context;
    for (const std::string& header : headers) context.AddMetadata("traceparent", header);
    EXPECT_TRUE(Extract(PathHeader(), {}, &context).status.ok());
  }
  server_.reset();
  EXPECT_THAT(log_.str(), HasSubstr("job_ended"));
  EXPECT_THAT(log_.str(), Not(HasSubstr("trace_id")));
  EXPECT_THAT(log_.str(), Not(HasSubstr("span_id")));
}

TEST_F(LifecycleTest, ListensOnAUnixSocketAndWritesThePortFile) {
  options_.listen = "unix:" + (folder_ / "socket");
  options_.port_file = folder_ / "ports.json";
  Start();
  EXPECT_TRUE(Extract(PathHeader()).status.ok());
  const auto ports = nlohmann::json::parse(ReadBytes(folder_ / "ports.json"));
  EXPECT_EQ(ports["grpc"], options_.listen);
  EXPECT_EQ(ports["http_port"], server_->http_port());
}

TEST_F(LifecycleTest, IsAliveWhereItsGrpcPortAnswers) {
  Start();
  EXPECT_TRUE(ProbeGrpc(server_->grpc_address(), std::chrono::seconds(20)).ok());
  EXPECT_EQ(Get("/livez").first, 200);
  // A listener that accepts no connection: they wait in its queue.
  const int deaf = socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof(address);
  ASSERT_EQ(bind(deaf, reinterpret_cast<const sockaddr*>(&address), size), 0);
  ASSERT_EQ(listen(deaf, 16), 0);
  ASSERT_EQ(getsockname(deaf, reinterpret_cast<sockaddr*>(&address), &size), 0);
  const std::string where = "127.0.0.1:" + std::to_string(ntohs(address.sin_port));
  EXPECT_THAT(std::string(ProbeGrpc(where, std::chrono::milliseconds(200)).message()),
              HasSubstr("does not answer"));
  close(deaf);
}

TEST_F(LifecycleTest, LeavesAUnixSocketToTheServerThatListensThere) {
  options_.listen = "unix:" + (folder_ / "socket");
  Start();
  std::ostringstream log;
  const auto second = Server::Start(options_, std::make_unique<FakeEngine>(engine_), MakeStreamSink(&log));
  EXPECT_THAT(std::string(second.status().message()), HasSubstr("another server listens on"));
  EXPECT_TRUE(Extract(PathHeader()).status.ok());
}

TEST_F(LifecycleTest, TakesTheSocketThatAServerLeftBehind) {
  options_.listen = "unix:" + (folder_ / "socket");
  sockaddr_un address = {.sun_family = AF_UNIX, .sun_path = {}};
  (folder_ / "socket").copy(address.sun_path, sizeof(address.sun_path) - 1);
  const int dead = socket(AF_UNIX, SOCK_STREAM, 0);
  ASSERT_EQ(bind(dead, reinterpret_cast<const sockaddr*>(&address), sizeof(address)), 0);
  close(dead);
  Start();
  EXPECT_TRUE(Extract(PathHeader()).status.ok());
}

TEST_F(LifecycleTest, SaysWhenAnAddressOrThePortFileCannotBeHad) {
  Start();
  const auto refused = [&](const std::function<void(ServerOptions*)>& change, const std::string& words) {
    ServerOptions options;
    options.listen = options.http = "127.0.0.1:0";
    change(&options);
    std::ostringstream log;
    const auto server = Server::Start(options, std::make_unique<FakeEngine>(engine_), MakeStreamSink(&log));
    EXPECT_THAT(std::string(server.status().message()), HasSubstr(words));
  };
  const std::string grpc_taken = server_->grpc_address();
  const std::string http_taken = "127.0.0.1:" + std::to_string(server_->http_port());
  refused([&](auto* o) { o->listen = grpc_taken; }, "cannot listen on " + grpc_taken);
  refused([&](auto* o) { o->http = http_taken; }, "cannot listen on " + http_taken);
  refused([&](auto* o) { o->port_file = folder_ / "psf.fits/ports"; }, "--port-file");
  refused([&](auto* o) { o->listen = "0.0.0.0:0"; }, "--insecure-any-address");
}

}  // namespace
}  // namespace spexd::testing
