// Several servers, and a network that is cut, with real servers in this process.
#include <algorithm>
#include <atomic>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "client/connection/connection_error.h"
#include "client/connection/credentials.h"
#include "client/connection/grpc_connection.h"
#include "client/connection/server_address.h"
#include "client/connection/server_directory.h"
#include "client/extract_client.h"
#include "tests/client/support/cut_proxy.h"
#include "tests/client/support/fake_connection.h"
#include "tests/client/support/stand_in_server.h"
#include "tests/support/matchers.h"
#include "tests/support/temp_folder.h"

namespace spexd::client {
namespace {

using spexd::testing::CutProxy;
using spexd::testing::FakeConnection;
using spexd::testing::GoodEvents;
using spexd::testing::Info;
using spexd::testing::Part;
using spexd::testing::SomeJob;
using spexd::testing::StandInAnswer;
using spexd::testing::StandInServer;
using spexd::testing::TempFolder;
using spexd::testing::WriteBytes;
using std::chrono::milliseconds;

StandInAnswer RefusedAnswer(grpc::StatusCode code, const char* text, std::optional<milliseconds> delay = {}) {
  return {{}, grpc::Status(code, text), delay};
}
StandInAnswer GoodAnswer() { return {GoodEvents(), grpc::Status::OK}; }

// An address of this machine where nobody listens. Another test could at any time use a port that is free
// now.
constexpr char kDeadAddress[] = "unix:/nowhere/spexd.sock";

class Waits : public JobObserver {
 public:
  void OnRetry(int attempt, const absl::Status& reason, milliseconds delay) override {
    delays.push_back(delay);
    reasons.emplace_back(reason.message());
  }
  std::vector<milliseconds> delays;
  std::vector<std::string> reasons;
};

class SeveralServers : public ::testing::Test {
 protected:
  // Runs a job on the servers at `addresses`. The seed determines the first server.
  absl::StatusOr<JobOutcome> Run(const std::string& addresses, uint32_t seed) {
    SCOPED_TRACE(seed);
    auto connections = ConnectAll({.address = addresses});
    if (!connections.ok()) return connections.status();
    RemoteOptions options;
    options.retry.seed = seed;
    options.retry.first_wait = milliseconds(10);
    options.retry.queue_patience = milliseconds(300);
    options.retry.health_patience = std::chrono::minutes(1);
    waits_ = Waits();
    return RemoteExtractor(Pointers(*connections), options).Run(SomeJob(), &waits_, {});
  }

  Waits waits_;
};

TEST_F(SeveralServers, AJobPassesByServersThatDrainAreDeadOrFull) {
  StandInServer draining(RefusedAnswer(grpc::StatusCode::UNAVAILABLE, "draining"));
  draining.SetServing(false);
  const StandInServer full(
      RefusedAnswer(grpc::StatusCode::RESOURCE_EXHAUSTED, "queue full", milliseconds(60000)));
  const StandInServer good(GoodAnswer());
  const std::string addresses =
      draining.address() + "," + kDeadAddress + "," + full.address() + "," + good.address();
  for (uint32_t seed = 0; seed < 10; ++seed) {
    const auto outcome = Run(addresses, seed);
    ASSERT_TRUE(outcome.ok()) << outcome.status();
    EXPECT_THAT(waits_.delays, Each(milliseconds(0)));
  }
  EXPECT_EQ(good.calls(), 10);
  EXPECT_EQ(draining.calls(), 0);  // its health is checked, and it gets no job
}

// gRPC answers so if a call arrives while its server shuts down.
TEST_F(SeveralServers, TakeAJobWhoseCallWasCancelledBeforeItWasTaken) {
  const StandInServer stopping(RefusedAnswer(grpc::StatusCode::CANCELLED, "CANCELLED"));
  const StandInServer good(GoodAnswer());
  for (const uint32_t seed : {1, 2, 3, 4}) {
    const auto outcome = Run(stopping.address() + "," + good.address(), seed);
    EXPECT_TRUE(outcome.ok()) << outcome.status();
  }
  EXPECT_GT(stopping.calls(), 0);
}

TEST_F(SeveralServers, ShareTheJobsOfAClientEqually) {
  const StandInServer first(GoodAnswer()), second(GoodAnswer()), third(GoodAnswer());
  const auto connections =
      ConnectAll({.address = first.address() + "," + second.address() + "," + third.address()});
  ASSERT_TRUE(connections.ok()) << connections.status();
  RemoteOptions options;
  options.retry.health_patience = std::chrono::minutes(1);
  RemoteExtractor extractor(Pointers(*connections), options);
  for (int k = 0; k < 12; ++k) EXPECT_TRUE(extractor.Run(SomeJob(), nullptr, {}).ok());
  for (const StandInServer* server : {&first, &second, &third}) EXPECT_EQ(server->calls(), 4);
}

TEST_F(SeveralServers, GiveAServerThatHasEndedNoJobOneAlone) {
  StandInAnswer endless = {{GoodEvents()[0]}, grpc::Status::OK};
  endless.holds = true;
  const StandInServer stuck(endless), good(GoodAnswer());
  const auto connections = ConnectAll({.address = stuck.address() + "," + good.address()});
  ASSERT_TRUE(connections.ok()) << connections.status();
  RemoteOptions options;
  options.retry.health_patience = std::chrono::minutes(1);
  RemoteExtractor extractor(Pointers(*connections), options);
  constexpr int kJobs = 20;
  std::atomic<int> begun = 0, done = 0;
  std::stop_source stop;
  const auto work = [&] {
    while (begun++ < kJobs) {
      if (extractor.Run(SomeJob(), nullptr, stop.get_token()).ok() && ++done == kJobs - 1)
        stop.request_stop();
    }
  };
  std::vector<std::thread> threads;
  for (int k = 0; k < 4; ++k) threads.emplace_back(work);
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(stuck.calls(), 1);
  EXPECT_EQ(good.calls(), kJobs - 1);
}

TEST_F(SeveralServers, AJobBeginsWithDifferentServers) {
  const StandInServer first(GoodAnswer()), second(GoodAnswer());
  for (uint32_t seed = 0; seed < 20; ++seed) {
    EXPECT_TRUE(Run(first.address() + "," + second.address(), seed).ok());
  }
  EXPECT_GT(first.calls(), 0);
  EXPECT_GT(second.calls(), 0);
}

TEST_F(SeveralServers, AJobWaitsForTheSmallestPushBackOnceAllHaveRefused) {
  const StandInServer long_queue(
      RefusedAnswer(grpc::StatusCode::RESOURCE_EXHAUSTED, "long queue", milliseconds(60000)));
  StandInAnswer pushes_back = RefusedAnswer(grpc::StatusCode::RESOURCE_EXHAUSTED, "short queue");
  pushes_back.pushback_ms = 100;
  const StandInServer short_queue(pushes_back);
  const auto outcome = Run(long_queue.address() + "," + short_queue.address(), 1);
  EXPECT_EQ(outcome.status().code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(outcome.status().message(),
              AllOf(HasSubstr("no server took the job"), HasSubstr(long_queue.address() + ": long queue"),
                    HasSubstr(short_queue.address() + ": short queue")));
  EXPECT_EQ(long_queue.calls(), 1);
  EXPECT_GE(short_queue.calls(), 3);  // waits of 100 to 125 ms, 300 ms in total
  // The first wait is shorter by the time that the other server took to refuse.
  for (size_t k = 2; k < waits_.delays.size(); ++k) EXPECT_GE(waits_.delays[k].count(), 100);
  for (const milliseconds delay : waits_.delays) EXPECT_LE(delay.count(), 125);
}

TEST_F(SeveralServers, AJobThatBeganIsNotRunAgainElsewhere) {
  const StandInAnswer dies = {{GoodEvents()[0], Info(), Part(0, 10, 2)},
                              grpc::Status(grpc::StatusCode::UNAVAILABLE, "died"),
                              milliseconds(1)};
  const StandInServer first(dies), second(dies);
  const auto outcome = Run(first.address() + "," + second.address(), 1);
  EXPECT_EQ(outcome.status().code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(first.calls() + second.calls(), 1);
}

TEST_F(SeveralServers, SayWhyNoneTookTheJob) {
  StandInServer draining(GoodAnswer());
  draining.SetServing(false);
  const auto outcome = Run(absl::StrCat(kDeadAddress, ",", draining.address()), 1);
  EXPECT_EQ(outcome.status().code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(outcome.status().message(),
              AllOf(HasSubstr(kDeadAddress), HasSubstr(draining.address() + ": NOT_SERVING")));
  EXPECT_EQ(draining.calls(), 0);
}

TEST(ServerAddress, IsAListOfServersEachOnce) {
  const auto servers = FindServers("a:1, unix:/run/spexd,a:1,b:2");
  ASSERT_TRUE(servers.ok()) << servers.status();
  std::vector<std::string> targets;
  for (const Endpoint& server : *servers) targets.push_back(server.target);
  EXPECT_THAT(targets, ElementsAre("a:1", "unix:/run/spexd", "b:2"));
  EXPECT_THAT(FindServers("a:1,,b:2").status().message(), HasSubstr("empty part"));
  EXPECT_EQ(FindServers("").status().code(), absl::StatusCode::kInvalidArgument);
}

TEST(ServerAddress, HasAPort) {
  for (const char* good : {"localhost:50051", "192.0.2.1:1", "[2001:db8::1]:65535", "ipv4:192.0.2.1:1", "dns:a:1",
                           "unix:/run/spexd", "unix-abstract:spexd"}) {
    EXPECT_TRUE(FindServers(good).ok()) << good;
  }
  const std::pair<std::string, std::string> wrong[] = {
      {"localhost", "server address localhost has no port; give host:port, such as localhost:50051"},
      {"a:1,node7", "server address node7 has no port"},
      {"2001:db8::1", "such as [2001:db8::1]:50051"},
      {"[::1]", "such as [::1]:50051"},
      {":50051", "such as localhost:50051"},
      {"localhost:", "the port must be a number from 1 to 65535"},
      {"localhost:spexd", "the port must be a number from 1 to 65535, such as localhost:50051"},
      {"localhost:70000", "the port must be a number from 1 to 65535"},
      {"http://localhost:9464", "must be host:port, without http://"},
  };
  for (const auto& [address, message] : wrong) {
    EXPECT_THAT(FindServers(address).status(),
                StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(message)));
  }
}

TEST(ConnectionErrors, TellWhatToCheck) {
  const std::string all = "failed to connect to all addresses; last error: UNKNOWN: ipv4:127.0.0.1:9464: ";
  const std::pair<std::string, std::string> cases[] = {
      {all + "Failed to connect to remote host: Connection refused", "nothing listens there"},
      {all + "Trying to connect an http1.x server", "does not speak gRPC; check the port"},
      {all + "Failed parsing HTTP/2", "does not speak gRPC; check the port"},
      {all + "Socket closed", "it may use TLS (give --tls-ca)"},
      {all + "Ssl handshake failed: SSL_ERROR_SSL: error:0A00010B:SSL routines::wrong version number",
       "the server does not use TLS; leave out --tls-ca"},
      {all + "Ssl handshake failed: SSL_ERROR_SSL: error:1000007d:SSL routines::CERTIFICATE_VERIFY_FAILED",
       "no authority in the file of --tls-ca signed it"},
      {all + "Peer name 127.0.0.1 is not in peer certificate", "is not for this name"},
      {all + "A fault of its own", "cannot connect; last error: UNKNOWN: ipv4:127.0.0.1:9464: A fault of its own"},
      {"DNS resolution failed for a.invalid:1: C-ares status is not ARES_SUCCESS", "this host name is not known"},
      {"Socket closed", "the server was stopped or restarted"},
      {"a server's own words: Socket closed", "a server's own words: Socket closed"},
  };
  for (const auto& [message, words] : cases) {
    EXPECT_THAT(ExplainConnectionError(message), HasSubstr(words)) << message;
  }
}

TEST(ServerAddress, LooksUpEveryAddressOfAName) {
  const Resolver resolver = [](const std::string& host, const std::string& port) {
    EXPECT_EQ(host, "spexd.example");
    return std::vector<std::string>{"192.0.2.1:" + port, "[2001:db8::1]:" + port, "192.0.2.1:" + port};
  };
  const auto servers = FindServers("dns:///spexd.example:50051", resolver);
  ASSERT_TRUE(servers.ok()) << servers.status();
  ASSERT_EQ(servers->size(), 2u);
  EXPECT_EQ((*servers)[0].target, "192.0.2.1:50051");
  EXPECT_EQ((*servers)[1].target, "[2001:db8::1]:50051");
  EXPECT_EQ((*servers)[1].tls_name, "spexd.example");
  for (const char* wrong : {"dns:///", "dns:///name", "dns:///:50051", "dns:///name:"}) {
    EXPECT_EQ(FindServers(wrong, resolver).status().code(), absl::StatusCode::kInvalidArgument) << wrong;
  }
}

TEST(ServerAddress, OfANameHasOneOrderHoweverItsAddressesRotate) {
  std::vector<std::string> addresses = {"192.0.2.2:1", "192.0.2.1:1", "192.0.2.3:1"};
  for (int k = 0; k < 3; ++k) {
    std::rotate(addresses.begin(), addresses.begin() + 1, addresses.end());
    const auto servers = FindServers("dns:///spexd.example:1",
                                     [&](const std::string&, const std::string&) { return addresses; });
    ASSERT_TRUE(servers.ok()) << servers.status();
    std::vector<std::string> targets;
    for (const Endpoint& server : *servers) targets.push_back(server.target);
    EXPECT_THAT(targets, ElementsAre("192.0.2.1:1", "192.0.2.2:1", "192.0.2.3:1"));
  }
}

TEST(ServerAddress, OfANameReachesItsServer) {
  const StandInServer server(GoodAnswer());
  const std::string port = server.address().substr(server.address().rfind(':'));
  const auto connections = ConnectAll({.address = "dns:///localhost" + port});
  ASSERT_TRUE(connections.ok()) << connections.status();
  EXPECT_TRUE(RemoteExtractor(Pointers(*connections)).Run(SomeJob(), nullptr, {}).ok());
}

TEST(ServerAddress, OfSeveralServersIsRefusedWhereOneIsMeant) {
  EXPECT_THAT(Connect({.address = "a:1,b:2"}).status().message(), HasSubstr("names 2 servers"));
}

TEST(ServerAddress, OfAnotherMachineGetsNoTokenInPlainText) {
  for (const char* own : {"127.0.0.1:50051", "127.8.9.10:1", "localhost:1", "[::1]:1", "unix:/run/spexd"}) {
    EXPECT_TRUE(StaysOnThisMachine(own)) << own;
  }
  for (const char* other : {"127.example.org:50051", "127.0.0.1.example.org:50051", "127.0.0.1x:1", "127.:1",
                            "localhost.example.org:1", "192.0.2.1:1"}) {
    EXPECT_FALSE(StaysOnThisMachine(other)) << other;
  }
}

// A name whose addresses a test changes, as a cluster does when it replaces servers.
class ServerDirectoryTest : public ::testing::Test {
 protected:
  Resolver resolver() {
    return [this](const std::string&, const std::string&) -> absl::StatusOr<std::vector<std::string>> {
      ++look_ups_;
      const std::vector<std::string> now = addresses_;
      addresses_ = later_.value_or(now);
      if (now.empty()) return absl::UnavailableError("no such name");
      return now;
    };
  }
  static std::vector<std::string> AddressesOf(const Servers& servers) {
    std::vector<std::string> addresses;
    for (const auto& server : servers) addresses.push_back(server->address());
    return addresses;
  }
  // Returns a directory of connections that are not used.
  ServerDirectory Directory() {
    const auto connect = [](const Endpoint& endpoint) {
      auto connection = std::make_unique<FakeConnection>(std::vector<spexd::testing::Script>());
      connection->name = endpoint.target;
      return connection;
    };
    return ServerDirectory(kName, connect, resolver());
  }

  static constexpr char kName[] = "dns:///spexd.example:50051";
  std::vector<std::string> addresses_;
  std::optional<std::vector<std::string>> later_;  // the addresses after the next look-up
  int look_ups_ = 0;
};

TEST_F(ServerDirectoryTest, LooksTheNameUpEachTimeAndKeepsTheConnectionsOfServersThatStay) {
  ServerDirectory directory = Directory();
  addresses_ = {"192.0.2.1:1", "192.0.2.2:1"};
  const absl::StatusOr<Servers> before = directory.Find();
  ASSERT_TRUE(before.ok()) << before.status();
  EXPECT_THAT(AddressesOf(*before), ElementsAre("192.0.2.1:1", "192.0.2.2:1"));
  addresses_ = {"192.0.2.2:1", "192.0.2.3:1"};
  const absl::StatusOr<Servers> after = directory.Find();
  ASSERT_TRUE(after.ok()) << after.status();
  EXPECT_THAT(AddressesOf(*after), ElementsAre("192.0.2.2:1", "192.0.2.3:1"));
  EXPECT_EQ((*after)[0], (*before)[1]);
  EXPECT_EQ(look_ups_, 2);
}

TEST_F(ServerDirectoryTest, KeepsTheServersFoundLastWhileTheNameHasNone) {
  ServerDirectory directory = Directory();
  EXPECT_EQ(directory.Find().status().code(), absl::StatusCode::kUnavailable);
  addresses_ = {"192.0.2.1:1"};
  ASSERT_TRUE(directory.Find().ok());
  addresses_ = {};
  const absl::StatusOr<Servers> found = directory.Find();
  ASSERT_TRUE(found.ok()) << found.status();
  EXPECT_THAT(AddressesOf(*found), ElementsAre("192.0.2.1:1"));
}

TEST_F(ServerDirectoryTest, SendsEachJobToTheServerThatTheNameHasWhenItBegins) {
  const StandInServer first(GoodAnswer()), second(GoodAnswer());
  const auto directory = OpenDirectory({.address = kName}, resolver());
  ASSERT_TRUE(directory.ok()) << directory.status();
  RemoteExtractor extractor((*directory)->source());
  addresses_ = {first.address()};
  EXPECT_TRUE(extractor.Run(SomeJob(), nullptr, {}).ok());
  addresses_ = {second.address()};
  EXPECT_TRUE(extractor.Run(SomeJob(), nullptr, {}).ok());
  EXPECT_EQ(first.calls(), 1);
  EXPECT_EQ(second.calls(), 1);
}

TEST_F(ServerDirectoryTest, FindsAServerThatReplacedAllThatRefusedTheJob) {
  const StandInServer full(RefusedAnswer(grpc::StatusCode::RESOURCE_EXHAUSTED, "full", milliseconds(60000)));
  const StandInServer good(GoodAnswer());
  const auto directory = OpenDirectory({.address = kName}, resolver());
  ASSERT_TRUE(directory.ok()) << directory.status();
  addresses_ = {kDeadAddress, full.address()};
  later_ = {good.address()};
  RemoteOptions options;
  options.retry.first_wait = options.retry.longest_wait = std::chrono::minutes(1);
  options.retry.health_patience = std::chrono::minutes(1);
  Waits waits;
  const auto outcome = RemoteExtractor((*directory)->source(), options).Run(SomeJob(), &waits, {});
  EXPECT_TRUE(outcome.ok()) << outcome.status();
  EXPECT_THAT(waits.delays, ElementsAre(milliseconds(0), milliseconds(0)));
}

TEST_F(ServerDirectoryTest, SendsNoTokenInPlainTextToAServerThatIsFoundLater) {
  const TempFolder folder;
  WriteBytes(folder / "token", "secret\n");
  const StandInServer own(GoodAnswer());
  const auto directory = OpenDirectory({.address = kName, .token_file = folder / "token"}, resolver());
  ASSERT_TRUE(directory.ok()) << directory.status();
  addresses_ = {own.address()};
  EXPECT_TRUE((*directory)->Find().ok());
  addresses_ = {"192.0.2.1:1"};
  EXPECT_THAT((*directory)->Find().status().message(), HasSubstr("192.0.2.1:1 in plain text"));
}

TEST_F(ServerDirectoryTest, LeavesOutAddressesThatMayGetNoTokenWhileThereAreOthers) {
  const TempFolder folder;
  WriteBytes(folder / "token", "secret\n");
  const StandInServer own(GoodAnswer());
  const auto directory = OpenDirectory({.address = kName, .token_file = folder / "token"}, resolver());
  ASSERT_TRUE(directory.ok()) << directory.status();
  addresses_ = {"192.0.2.1:1", own.address()};
  const absl::StatusOr<Servers> found = (*directory)->Find();
  ASSERT_TRUE(found.ok()) << found.status();
  EXPECT_THAT(AddressesOf(*found), ElementsAre(own.address()));
  const auto named_by_the_user =
      OpenDirectory({.address = own.address() + ",192.0.2.1:1", .token_file = folder / "token"});
  ASSERT_TRUE(named_by_the_user.ok()) << named_by_the_user.status();
  EXPECT_THAT((*named_by_the_user)->Find().status().message(), HasSubstr("192.0.2.1:1 in plain text"));
}

TEST(Pings, FindANetworkThatWasCut) {
  StandInAnswer answer = {{GoodEvents()[0], Info(), Part(0, 10, 2)}, grpc::Status::OK};
  answer.holds = true;
  const StandInServer server(answer);
  CutProxy network(server.address());
  const auto connection = MakeGrpcConnection(network.address(), {milliseconds(500), milliseconds(5000)});
  class CutsAtTheFirstBundle : public JobObserver {
   public:
    explicit CutsAtTheFirstBundle(CutProxy* network) : network_(network) {}
    void OnBundle(const BundleSpectra& bundle, int done, int total) override { network_->Cut(); }

   private:
    CutProxy* const network_;
  } observer(&network);
  Job job = SomeJob();
  job.deadline = Clock::now() + std::chrono::minutes(1);
  const auto outcome = RemoteExtractor(connection.get()).Run(job, &observer, {});
  EXPECT_EQ(outcome.status().code(), absl::StatusCode::kUnavailable) << outcome.status();
}

TEST(Pings, GoOnForALongTimeWithoutData) {
  // Longer than the two pings that gRPC sends by default would cover.
  StandInAnswer answer = {{GoodEvents()[0]}, grpc::Status::OK};
  answer.holds = true;
  const StandInServer server(answer);
  CutProxy network(server.address());
  const auto connection = MakeGrpcConnection(network.address(), {milliseconds(500), milliseconds(5000)});
  const auto stream = connection->Extract(Clock::now() + std::chrono::minutes(1));
  stream->WritesDone();
  v1::ExtractEvent event;
  ASSERT_TRUE(stream->Read(&event));
  network.AwaitFromClient(5);
  network.Cut();
  EXPECT_FALSE(stream->Read(&event));
  EXPECT_EQ(stream->Finish().status.code(), absl::StatusCode::kUnavailable);
}

}  // namespace
}  // namespace spexd::client
