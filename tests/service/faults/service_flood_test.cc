// Clients that open more than they use, against the real program: others are served meanwhile, the flood ends
// with specific errors, and its memory is freed.
#include <netinet/in.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <deque>
#include <string>
#include <thread>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "core/base/file_descriptor.h"
#include "tests/service/support/harness.h"
#include "tests/service/support/scrape.h"
#include "tests/support/eventually.h"
#include "tests/support/idle_machine.h"
#include "tests/support/loopback.h"
#include "tests/support/matchers.h"
#include "tests/support/process.h"

namespace spexd::testing {
namespace {

using grpc::StatusCode;
using std::chrono::steady_clock;
using std::chrono::system_clock;

const std::chrono::duration<double> kSoon = OnAnIdleMachine(std::chrono::seconds(1));

class FloodTest : public ::testing::Test {
 protected:
  struct Call {
    grpc::ClientContext context;
    std::unique_ptr<ExtractStream> stream;
  };
  using Calls = std::vector<std::unique_ptr<Call>>;

  void Start(std::vector<std::string> flags, int max_descriptors = -1) {
    flags.insert(flags.end(), {"--allow-root", folder_.path(), "--threads", "1"});
    ProcessOptions options;
    options.max_descriptors = max_descriptors;
    spexd_ = std::make_unique<TestServer>(flags, options);
    honest_ = NewStub();
    ExpectServed();  // keeps the first job's memory out of the flood
  }
  // Returns a stub with its own connection.
  std::unique_ptr<v1::Extraction::Stub> NewStub() const {
    grpc::ChannelArguments own;
    own.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
    return v1::Extraction::NewStub(
        grpc::CreateCustomChannel(spexd_->address(), grpc::InsecureChannelCredentials(), own));
  }
  // Opens streams on which nothing is sent.
  static void Open(v1::Extraction::Stub* stub, int count, Calls* calls) {
    for (int k = 0; k < count; ++k) {
      auto call = std::make_unique<Call>();
      call->stream = stub->Extract(&call->context);
      calls->push_back(std::move(call));
    }
  }
  static void SendEmptyChunk(ExtractStream* stream) {
    v1::ExtractRequest request;
    request.mutable_chunk()->set_input(v1::INPUT_IMAGE);
    stream->Write(request);
  }
  static grpc::Status End(Call* call) { return ReadToTheEnd(call->stream.get()); }
  // Runs a job of a well-behaved client; returns how long it took.
  std::chrono::duration<double> ExpectServed() {
    Call call;
    const auto since = steady_clock::now();
    call.stream = honest_->Extract(&call.context);
    SendHeader(call.stream.get(), PathHeader(folder_, 5));
    call.stream->WritesDone();
    EXPECT_THAT(End(&call), IsOk());
    return steady_clock::now() - since;
  }
  double Metric(const std::string& series) const { return ScrapedMetric(spexd_->http(), series); }
  double Memory() const { return Metric("process_resident_memory_bytes"); }
  // Not checked with sanitizers, which keep memory of their own, nor on a busy machine, where more threads of
  // gRPC work at once and keep their stacks and pools.
  void ExpectMemoryBelow(double most) const {
    if (!IsIdleMachine()) return;
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
    EXPECT_TRUE(Eventually([&] { return Memory() < most; })) << Memory() << " bytes, at most " << most;
#endif
  }
  void ExpectMemoryBack(double before) const { ExpectMemoryBelow(1.1 * before); }
  // Opens `streams` streams, 250 on each connection, serves a job meanwhile, and ends them. Returns the bytes
  // that they took.
  double ServeWhileStreamsIdle(int streams) {
    constexpr int kOnAConnection = 250;
    const double before = Memory();
    std::vector<std::unique_ptr<v1::Extraction::Stub>> stubs;
    Calls calls;
    for (int opened = 0; opened < streams; opened += kOnAConnection) {
      stubs.push_back(NewStub());
      Open(stubs.back().get(), kOnAConnection, &calls);
    }
    EXPECT_TRUE(Eventually([&] { return Metric("spexd_streams") == streams; }));
    const double taken = Memory() - before;
    std::printf("%d idle streams: %.1f kB each, with their connections\n", streams, taken / streams / 1e3);
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
    EXPECT_LT(taken / streams, 100e3);
#endif
    EXPECT_LT(ExpectServed(), kSoon);
    for (const auto& call : calls) call->context.TryCancel();
    for (const auto& call : calls) End(call.get());
    return taken;
  }

  InputFolder folder_;
  std::unique_ptr<TestServer> spexd_;
  std::unique_ptr<v1::Extraction::Stub> honest_;
};

TEST_F(FloodTest, StreamsWithoutAHeaderHoldUpNobodyAndEndInTime) {
  Start({"--header-seconds", "20"});
  const double before = Memory();
  const auto first = NewStub(), second = NewStub();
  Calls calls;
  Open(first.get(), 200, &calls);
  Open(second.get(), 185, &calls);
  ASSERT_TRUE(Eventually([&] { return Metric("spexd_streams") == 385; }));
  EXPECT_LT(ExpectServed(), kSoon);
  for (const auto& call : calls) {
    EXPECT_THAT(End(call.get()),
                StatusIs(StatusCode::DEADLINE_EXCEEDED, HasSubstr("no header came within 20 seconds")));
  }
  ExpectMemoryBack(before);
}

TEST_F(FloodTest, StreamsThatDripEmptyChunksAreRefused) {
  Start({});
  const double before = Memory();
  const auto dripping = NewStub();
  Calls calls;
  Open(dripping.get(), 130, &calls);
  for (const auto& call : calls) SendHeader(call->stream.get(), RawHeader(folder_, 5));
  for (const auto& call : calls) {
    v1::ExtractEvent accepted;
    if (call->stream->Read(&accepted)) SendEmptyChunk(call->stream.get());
  }
  EXPECT_LT(ExpectServed(), kSoon);
  for (const auto& call : calls) {
    EXPECT_THAT(End(call.get()),
                StatusIs(StatusCode::INVALID_ARGUMENT, HasSubstr("image: an empty chunk came at offset 0")));
  }
  EXPECT_TRUE(Eventually([&] { return Metric("spexd_queue_jobs") == 0; }));
  ExpectMemoryBack(before);
}

TEST_F(FloodTest, AnInputThatNeverEndsIsCutOff) {
  Start({"--input-seconds", "5", "--max-queued-jobs", "0"});
  const auto slow = NewStub();
  Calls calls;
  Open(slow.get(), 2, &calls);
  for (const auto& call : calls) SendHeader(call->stream.get(), RawHeader(folder_, 5));
  for (const auto& call : calls) {
    EXPECT_THAT(End(call.get()),
                StatusIs(StatusCode::DEADLINE_EXCEEDED,
                         HasSubstr("the input was not complete 5 seconds after its header")));
  }
  EXPECT_LT(ExpectServed(), kSoon);
}

TEST_F(FloodTest, StreamsBeyondTheLimitAreRefusedWithADelay) {
  Start({"--max-streams-per-connection", "10"});
  const auto greedy = NewStub();
  Calls calls;
  Open(greedy.get(), 12, &calls);
  ASSERT_TRUE(Eventually([&] { return Metric("spexd_rejections_total{reason=\"too_many_calls\"}") == 2; }));
  Call one_more;
  one_more.stream = greedy->Extract(&one_more.context);
  const grpc::Status status = End(&one_more);
  EXPECT_THAT(status,
              StatusIs(StatusCode::RESOURCE_EXHAUSTED, HasSubstr("--max-streams-per-connection is 10")));
  EXPECT_EQ(Answer({status, {}, {}}).retry_seconds(), 2);
  EXPECT_EQ(one_more.context.GetServerTrailingMetadata().count("grpc-retry-pushback-ms"), 1u);
  EXPECT_LT(ExpectServed(), kSoon);
}

TEST_F(FloodTest, AnIdleStreamTakesLessThanAHundredKilobytes) {
  Start({"--header-seconds", "3600"});
  const double before = Memory();
  ServeWhileStreamsIdle(1000);
  ExpectMemoryBack(before);
}

// A case of the second tier. The memory that gRPC keeps after the first flood serves the second.
TEST_F(FloodTest, TenThousandIdleStreamsLeaveTheServerAsItWas) {
  constexpr int kStreams = 10000;
  Start({"--header-seconds", "3600", "--max-streams-per-peer", std::to_string(kStreams + 1)});
  const double before = Memory();
  const double taken = ServeWhileStreamsIdle(kStreams);
  ExpectMemoryBelow(before + 0.1 * taken);
  const double after_one = Memory();
  ServeWhileStreamsIdle(kStreams);
  ExpectMemoryBack(after_one);
}

// `from`: an address of the loopback network, for tests where the client's address matters.
FileDescriptor ConnectTo(const std::string& address, const std::string& from = "127.0.0.1") {
  FileDescriptor connection = ConnectOnLoopback(address, {.source = from});
  EXPECT_GE(connection.get(), 0) << from << " cannot connect to " << address;
  return connection;
}

TEST_F(FloodTest, ConnectionsBeyondItsDescriptorsAreClosedAndItServesOn) {
  Start({"--max-connections", "10000", "--max-connections-per-peer", "10000"}, 128);
  {
    std::vector<FileDescriptor> connections;
    for (int k = 0; k < 300; ++k) connections.push_back(ConnectTo(spexd_->address()));
    EXPECT_LT(ExpectServed(), kSoon);  // on the connection that it has already
  }
  const auto later = NewStub();
  grpc::ClientContext context;
  context.set_wait_for_ready(true);
  context.set_deadline(system_clock::now() + std::chrono::minutes(1));
  v1::Capabilities answer;
  EXPECT_TRUE(later->GetCapabilities(&context, {}, &answer).ok());
  EXPECT_EQ(HttpGet(spexd_->http(), "/livez").first, 200);
}

// Above the limit of a port, new connections end older ones; on gRPC's port, those that are silent.
TEST_F(FloodTest, IdleConnectionsOfManyPeersToEitherPortLeaveBothServing) {
  Start({"--jobs-dir", folder_ / "jobs"}, 256);
  for (const std::string& flooded : {spexd_->address(), spexd_->http()}) {
    std::vector<FileDescriptor> connections;
    for (int k = 0; k < 400; ++k)
      connections.push_back(ConnectTo(flooded, absl::StrCat("127.0.1.", 1 + k / 2)));
    for (const char* page : {"/livez", "/readyz", "/metrics", "/"}) {
      EXPECT_EQ(HttpGet(spexd_->http(), page).first, 200) << page << " while " << flooded << " is flooded";
    }
    EXPECT_LT(ExpectServed(), kSoon);  // on the connection that it has already
    honest_ = NewStub();
    EXPECT_LT(ExpectServed(), kSoon) << "on a new connection";
    EXPECT_LT(Metric("process_open_fds"), 256 - 32) << "the reserve is there for jobs";
  }
  EXPECT_GT(Metric("spexd_rejections_total{reason=\"connections\"}"), 0);
  EXPECT_GT(Metric("spexd_rejections_total{reason=\"http_connections\"}"), 0);
}

TEST_F(FloodTest, SilentConnectionsOfItsOwnAddressKeepNoNewClientOut) {
  Start({"--max-connections-per-peer", "20"});
  std::vector<FileDescriptor> connections;
  for (int k = 0; k < 50; ++k) connections.push_back(ConnectTo(spexd_->address()));
  honest_ = NewStub();
  EXPECT_LT(ExpectServed(), kSoon);
  EXPECT_LE(Metric("spexd_connections"), 20);
}

// Opens silent connections from an address as fast as the server accepts them, until it is destroyed.
class SilentFlood {
 public:
  SilentFlood(std::string server, std::string from, int limit)
      : thread_([=, this] {
          std::deque<FileDescriptor> open;
          while (!over_) {
            open.push_back(ConnectTo(server, from));
            ++opened_;
            if (opened_ <= limit) continue;
            char byte = 0;
            recv(open.front().get(), &byte, 1, 0);  // waits: the server closes the oldest
            open.pop_front();
            full_ = true;
            full_.notify_all();
          }
        }) {}
  ~SilentFlood() {
    over_ = true;
    thread_.join();
  }
  // Waits until the server has closed a connection.
  void AwaitFull() const { full_.wait(false); }
  int opened() const { return opened_; }

 private:
  std::atomic<bool> over_ = false, full_ = false;
  std::atomic<int> opened_ = 0;
  std::thread thread_;
};

// A case of the second tier: a client that takes longer for its first bytes than thousands of others for a
// connection counts as one of them.
TEST_F(FloodTest, NewClientsAreServedWhileSilentConnectionsComeWithoutEnd) {
  constexpr int kMaxConnections = 2000;
  rlimit limit{};
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &limit), 0);
  if (limit.rlim_max < 4 * kMaxConnections)
    GTEST_SKIP() << "takes more file descriptors than are allowed here";
  limit.rlim_cur = limit.rlim_max;
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &limit), 0);
  Start({"--max-connections-per-peer", std::to_string(kMaxConnections)});
  const SilentFlood same(spexd_->address(), "127.0.0.1", kMaxConnections),
      other(spexd_->address(), "127.0.0.2", kMaxConnections);
  same.AwaitFull();
  other.AwaitFull();
  for (int k = 0; k < 20; ++k) {
    honest_ = NewStub();
    EXPECT_LT(ExpectServed(), kSoon);
  }
  EXPECT_EQ(HttpGet(spexd_->http(), "/livez").first, 200);
  std::printf("%d silent connections came meanwhile\n", same.opened() + other.opened());
}

TEST_F(FloodTest, ConnectionsOfAPeerBeyondTheLimitAreClosed) {
  Start({"--max-connections-per-peer", "20"});
  std::vector<FileDescriptor> connections;
  for (int k = 0; k < 30; ++k) connections.push_back(ConnectTo(spexd_->address()));
  EXPECT_TRUE(Eventually([&] { return Metric("spexd_rejections_total{reason=\"connections\"}") == 11; }));
  EXPECT_EQ(Metric("spexd_connections"), 20);
  EXPECT_LT(ExpectServed(), kSoon);
  EXPECT_EQ(HttpGet(spexd_->http(), "/livez").first, 200);
  connections.clear();
  EXPECT_TRUE(Eventually([&] { return Metric("spexd_connections") == 1; }));
}

// Shuts down the process's socket that listens at `address` from outside, as if the system had taken it away.
// NotFound if there is none; PermissionDenied if the system forbids access to the descriptors of another
// process.
absl::Status ShutDownListener(pid_t id, const std::string& wanted) {
  const FileDescriptor process(static_cast<int>(syscall(SYS_pidfd_open, id, 0)));
  for (int number = 3; number < 64; ++number) {
    const FileDescriptor copy(static_cast<int>(syscall(SYS_pidfd_getfd, process.get(), number, 0)));
    if (copy.get() < 0 && errno == EPERM) return absl::PermissionDeniedError("pidfd_getfd");
    sockaddr_in address = {};
    socklen_t size = sizeof(address);
    int listens = 0;
    socklen_t length = sizeof(listens);
    if (getsockopt(copy.get(), SOL_SOCKET, SO_ACCEPTCONN, &listens, &length) != 0 || listens == 0) continue;
    getsockname(copy.get(), reinterpret_cast<sockaddr*>(&address), &size);
    if ("127.0.0.1:" + std::to_string(ntohs(address.sin_port)) != wanted) continue;
    if (shutdown(copy.get(), SHUT_RDWR) == 0) return absl::OkStatus();
  }
  return absl::NotFoundError(wanted);
}

TEST_F(FloodTest, ADeadListenerOfEitherPortEndsTheServer) {
  for (const bool http : {false, true}) {
    SCOPED_TRACE(http ? "HTTP" : "gRPC");
    Start({});
    const absl::Status dead =
        ShutDownListener(spexd_->process().id(), http ? spexd_->http() : spexd_->address());
    if (absl::IsPermissionDenied(dead)) GTEST_SKIP() << "this system lets nobody take another's descriptors";
    ASSERT_TRUE(dead.ok()) << dead;
    EXPECT_EQ(spexd_->process().Wait(), 1);
    EXPECT_THAT(ReadBytes(spexd_->log()), HasSubstr("\"listener_failed\""));
  }
}

}  // namespace
}  // namespace spexd::testing
