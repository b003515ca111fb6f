// Clients that disappear or read slowly, and a server that is told to stop, with the programs themselves: the
// server continues, frees slot and memory, and serves others within a second.
#include <gtest/gtest.h>
#include <signal.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/base/threads/mutex.h"
#include "grpcpp/grpcpp.h"
#include "tests/service/support/calls.h"
#include "tests/service/support/inputs.h"
#include "tests/service/support/scrape.h"
#include "tests/service/support/slow_link.h"
#include "tests/support/eventually.h"
#include "tests/support/idle_machine.h"
#include "tests/support/process.h"

namespace spexd::testing {
namespace {

using grpc::StatusCode;
using std::chrono::steady_clock;

// Sanitizers make the engine many times slower.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr char kJobSeconds[] = "15";  // a small job is done within this time
constexpr int kClientsOfAStage = 1;   // sanitizers keep memory of their own, so growth is not checked
#else
constexpr char kJobSeconds[] = "8";
constexpr int kClientsOfAStage = 4;
#endif
const std::chrono::duration<double> kSoon = OnAnIdleMachine(std::chrono::seconds(1));

class ClientFaultTest : public ::testing::Test {
 protected:
  // Starts a server that has done no job.
  void StartNew(std::vector<std::string> flags) {
    flags.insert(flags.end(), {"--allow-root", folder_.path(), "--threads", "1", "--device", "cpu"});
    spexd_ = std::make_unique<TestServer>(flags);
    channel_ = Connect(spexd_->address());
  }
  void Start(const std::vector<std::string>& flags) {
    StartNew(flags);
    ExpectServed();  // keeps the first job's memory and time out of the test
  }
  // Returns a channel with its own connection.
  static std::shared_ptr<grpc::Channel> Connect(const std::string& address) {
    grpc::ChannelArguments own;
    own.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
    return grpc::CreateCustomChannel(address, grpc::InsecureChannelCredentials(), own);
  }
  std::unique_ptr<Process> ClientAt(const std::string& stage) const {
    auto client = std::make_unique<Process>(
        std::vector<std::string>{BinFolder() + "/staged_client", spexd_->address(), folder_.path(), stage});
    EXPECT_TRUE(client->WaitForLine("ready to be killed")) << stage << ": " << client->output();
    return client;
  }
  static void Kill(Process* client) {
    client->Signal(SIGKILL);
    EXPECT_EQ(client->Wait(), 128 + SIGKILL);
  }
  // Runs a job of a well-behaved client; returns how long it took.
  std::chrono::duration<double> ExpectServed() {
    const auto since = steady_clock::now();
    bool accepted = false;
    const grpc::Status status = Extract(channel_, &accepted);
    EXPECT_TRUE(status.ok()) << status.error_message();
    return steady_clock::now() - since;
  }
  // Runs a small job. If the status is OK, all its results have arrived.
  grpc::Status Extract(const std::shared_ptr<grpc::Channel>& channel, bool* accepted) {
    grpc::ClientContext context;
    const auto stub = v1::Extraction::NewStub(channel);
    const auto stream = stub->Extract(&context);
    v1::ExtractRequest request;
    *request.mutable_header() = PathHeader(folder_, 5);
    stream->Write(request);
    stream->WritesDone();
    uint32_t fibres = 0;
    v1::ExtractEvent event;
    while (stream->Read(&event)) {
      *accepted |= event.has_accepted();
      fibres += event.bundle().fibre_count();
    }
    const grpc::Status status = stream->Finish();
    EXPECT_TRUE(!status.ok() || fibres == kFibres) << fibres;
    return status;
  }
  // Until the server notices that the client is gone, it may refuse others, because they would have to wait
  // for that client's job.
  void ExpectServedSoonAfterKilling(Process* client, double cancelled) {
    Kill(client);
    const auto since = steady_clock::now();
    EXPECT_TRUE(Eventually([&] { return Cancelled() == cancelled; })) << Cancelled();
    ExpectServed();
    EXPECT_LT(steady_clock::now() - since, kSoon);
  }
  double Metric(const std::string& series) const { return ScrapedMetric(spexd_->http(), series); }
  double Cancelled() const {
    double all = 0;
    for (const char* stage : {"receiving", "queued", "reading", "preparing", "extracting", "sending"})
      all += Metric(absl::StrCat("spexd_cancellations_total{stage=\"", stage, "\"}"));
    return all;
  }
  bool IsIdle() const {
    return Metric("spexd_streams") == 0 && Metric("spexd_queue_jobs") == 0 &&
           Metric("spexd_jobs_in_flight") == 0;
  }
  int Stop() {
    spexd_->process().Signal(SIGTERM);
    return spexd_->process().Wait();
  }

  InputFolder folder_;
  std::unique_ptr<TestServer> spexd_;
  std::shared_ptr<grpc::Channel> channel_;
};

TEST_F(ClientFaultTest, AClientThatIsKilledAtAnyStageLeavesItsSlotToOthersWithinASecond) {
  Start({"--max-running-jobs", "1", "--max-result-bytes", "2MiB"});
  double killed = 0;
  for (const char* stage : {"header", "input", "running", "results"}) {
    SCOPED_TRACE(stage);
    const auto client = ClientAt(stage);
    ExpectServedSoonAfterKilling(client.get(), ++killed);
  }
  const auto running = ClientAt("running"), queued = ClientAt("queued");
  Kill(queued.get());
  EXPECT_TRUE(Eventually([&] { return Metric("spexd_cancellations_total{stage=\"queued\"}") == 1; }));
  ExpectServedSoonAfterKilling(running.get(), killed + 2);
  EXPECT_TRUE(Eventually([&] { return IsIdle(); }));
  EXPECT_EQ(Stop(), 0);
}

TEST_F(ClientFaultTest, MemoryOfClientsThatAreKilledComesBack) {
  Start({"--max-running-jobs", "2"});
  // Kills this number of clients at each stage; returns the relative growth of the server's memory.
  const auto growth = [this] {
    const double before = Metric("process_resident_memory_bytes");
    for (int k = 0; k < kClientsOfAStage; ++k) {
      std::vector<std::unique_ptr<Process>> clients;
      for (const char* stage : {"input", "results", "queued", "header"}) clients.push_back(ClientAt(stage));
      for (const auto& client : clients) Kill(client.get());
      EXPECT_TRUE(Eventually([&] { return IsIdle(); }));
    }
    return Metric("process_resident_memory_bytes") / before - 1;
  };
  // The heap of each thread allocates what a job needs once and keeps it, so the first rounds may grow.
  [[maybe_unused]] double last = growth();
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
  if (IsIdleMachine()) {  // on a busy machine more threads may work at once in some rounds
    for (int round = 1; round < 15 && last > 0.01; ++round) last = growth();
    EXPECT_LE(last, 0.01) << "of " << Metric("process_resident_memory_bytes") << " bytes";
  }
#endif
  EXPECT_EQ(Stop(), 0);
}

// A client that reads its results at a kilobyte per second, from construction to destruction.
class SlowReader {
 public:
  SlowReader(const std::string& address, const v1::JobHeader& header)
      : link_(std::make_unique<SlowLink>(address, 1024)),
        stub_(v1::Extraction::NewStub(
            grpc::CreateCustomChannel(link_->address(), grpc::InsecureChannelCredentials(), SmallWindow()))),
        stream_(stub_->Extract(&context_)) {
    v1::ExtractRequest request;
    *request.mutable_header() = header;
    stream_->Write(request);
    stream_->WritesDone();
    thread_ = std::thread([this] { Read(); });
  }
  ~SlowReader() {
    link_.reset();  // ends the client, whatever the server does
    thread_.join();
  }
  void Cancel() { context_.TryCancel(); }
  bool ended() const { return ended_; }

 private:
  // Allows 4 KiB to be sent but not yet read. By default gRPC allows megabytes in transit, so the results of
  // a small job would count as read by the server.
  static grpc::ChannelArguments SmallWindow() {
    grpc::ChannelArguments arguments;
    arguments.SetInt(GRPC_ARG_HTTP2_BDP_PROBE, 0);
    arguments.SetInt(GRPC_ARG_HTTP2_STREAM_LOOKAHEAD_BYTES, 4096);
    return arguments;
  }
  void Read() {
    v1::ExtractEvent event;
    while (stream_->Read(&event)) continue;
    EXPECT_FALSE(stream_->Finish().ok());
    ended_ = true;
  }

  std::unique_ptr<SlowLink> link_;
  std::unique_ptr<v1::Extraction::Stub> stub_;
  grpc::ClientContext context_;
  std::unique_ptr<grpc::ClientReaderWriter<v1::ExtractRequest, v1::ExtractEvent>> stream_;
  std::atomic<bool> ended_ = false;
  std::thread thread_;
};

class SlowReaderTest : public ClientFaultTest {
 protected:
  // 112 kB of results in bundles of one fibre take minutes on such a link.
  std::unique_ptr<SlowReader> MakeSlowReader() const {
    v1::JobHeader header = PathHeader(folder_, 1);
    header.mutable_grid()->set_first(kWaveMin);
    header.mutable_grid()->set_step(0.2);
    header.mutable_grid()->set_count(200);
    return std::make_unique<SlowReader>(spexd_->address(), header);
  }
};

TEST_F(SlowReaderTest, OfAKilobyteASecondSlowsNobodyAndTakesNoMoreThanItsShareOfMemory) {
  constexpr int kSlow = 4, kWithoutRoom = 2;
  Start({"--max-running-jobs", "1", "--max-result-bytes", "500000"});
  std::vector<std::unique_ptr<SlowReader>> slow;
  for (int k = 0; k < kSlow; ++k) slow.push_back(MakeSlowReader());
  // Two jobs are done and their results wait; the reader's other jobs get no slot until it reads.
  const auto wait = [&] {
    return Metric("spexd_streams") == kSlow && Metric("spexd_jobs_in_flight") == 0 &&
           Metric("spexd_queue_ready_jobs") == kWithoutRoom;
  };
  ASSERT_TRUE(Eventually(wait)) << Metric("spexd_queue_ready_jobs") << " wait";
  std::vector<std::chrono::duration<double>> served(11);
  for (auto& seconds : served) seconds = ExpectServed();
  std::sort(served.begin(), served.end());
  EXPECT_LT(served[served.size() / 2], kSoon);
  EXPECT_TRUE(wait());
  for (const auto& reader : slow) EXPECT_FALSE(reader->ended());
  for (const auto& reader : slow) reader->Cancel();
  EXPECT_TRUE(Eventually([&] { return IsIdle(); }));
  EXPECT_EQ(Cancelled(), kSlow);
  slow.clear();
  EXPECT_LT(ExpectServed(), kSoon);
  EXPECT_EQ(Stop(), 0);
}

TEST_F(SlowReaderTest, IsCutOffAtTheLimitOfAJobsTime) {
  StartNew({"--max-job-seconds", kJobSeconds});  // a new server has no estimate by which it could refuse
  const auto slow = MakeSlowReader();
  EXPECT_TRUE(Eventually([&] { return Metric("spexd_jobs_total{outcome=\"deadline_exceeded\"}") == 1; }));
  // The job was done except for its reader.
  EXPECT_TRUE(Eventually([&] { return Metric("spexd_cancellations_total{stage=\"sending\"}") == 1; }));
  EXPECT_TRUE(Eventually([&] { return IsIdle(); }));
  EXPECT_LT(ExpectServed(), kSoon);
  EXPECT_EQ(Stop(), 0);
}

TEST_F(SlowReaderTest, IsCutOffWhereAMessageTakesLongerThanAClientMayStall) {
  StartNew({"--stall-seconds", "5"});
  const auto slow = MakeSlowReader();
  EXPECT_TRUE(Eventually([&] { return Metric("spexd_jobs_total{outcome=\"cancelled\"}") == 1; }));
  EXPECT_TRUE(Eventually([&] { return IsIdle(); }));
  EXPECT_LT(ExpectServed(), kSoon);
  EXPECT_EQ(Stop(), 0);
}

// The clients' view of a server that is told to stop under load.
struct Load {
  Mutex mutex;
  std::set<std::string> submitted ABSL_GUARDED_BY(mutex);
  std::atomic<int> done = 0, refused = 0;
};

class SigtermTest : public ClientFaultTest {
 protected:
  std::vector<std::string> Flags() const {
    return {"--max-running-jobs", "2", "--jobs-dir", folder_ / "jobs"};
  }

  // Returns whether a call was refused because the server is stopping; gRPC itself answers CANCELLED.
  static bool IsRefusal(const grpc::Status& status) {
    return status.error_code() == StatusCode::UNAVAILABLE || status.error_message() == "CANCELLED";
  }
  std::string Submit(const std::string& request_id) {
    grpc::ClientContext context;
    v1::SubmitReply reply;
    const grpc::Status status = SubmitJob(v1::Jobs::NewStub(channel_).get(), &context,
                                          Submission(request_id, PathHeader(folder_, 5)), &reply);
    EXPECT_TRUE(status.ok() || IsRefusal(status)) << status.error_code() << " " << status.error_message();
    return status.ok() ? reply.job_id() : "";
  }
  // Runs one job after the other until the server takes no more. A job that was accepted is done.
  void Work(int number, Load* load) {
    const std::shared_ptr<grpc::Channel> channel = Connect(spexd_->address());
    for (int job = 0;; ++job) {
      if (number % 2 == 0) {
        const std::string id = Submit(absl::StrCat("client ", number, " job ", job));
        if (id.empty()) break;
        MutexLock lock(&load->mutex);
        load->submitted.insert(id);
      } else {
        bool accepted = false;
        const grpc::Status status = Extract(channel, &accepted);
        EXPECT_TRUE(status.ok() || !accepted) << status.error_code() << " " << status.error_message();
        if (!status.ok()) {
          EXPECT_TRUE(IsRefusal(status)) << status.error_code() << " " << status.error_message();
          break;
        }
      }
      ++load->done;
    }
    ++load->refused;
  }
  // Waits for the job's end; returns the number of fibres in its results.
  uint32_t Watch(const std::string& id) {
    grpc::ClientContext context;
    uint32_t fibres = 0;
    const grpc::Status status =
        WatchJob(v1::Jobs::NewStub(channel_).get(), &context, id, 0,
                 [&](const v1::WatchEvent& event) { fibres += event.event().bundle().fibre_count(); });
    EXPECT_TRUE(status.ok()) << id << ": " << status.error_message();
    return fibres;
  }
};

TEST_F(SigtermTest, UnderLoadLosesNothing) {
  Start(Flags());
  Load load;
  std::vector<std::thread> clients;
  for (int k = 0; k < 6; ++k) clients.emplace_back([&, k] { Work(k, &load); });
  EXPECT_TRUE(Eventually([&] { return load.done >= 40; }));
  EXPECT_EQ(Stop(), 0) << ReadBytes(spexd_->log());
  for (std::thread& client : clients) client.join();
  EXPECT_EQ(load.refused, 6);
  Start(Flags());
  MutexLock lock(&load.mutex);
  EXPECT_FALSE(load.submitted.empty());
  for (const std::string& id : load.submitted) EXPECT_EQ(Watch(id), static_cast<uint32_t>(kFibres));
}

}  // namespace
}  // namespace spexd::testing
