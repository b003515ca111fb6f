// The proxies of deploy/haproxy and deploy/nginx before the real spexd: jobs go through them, and clients
// that ask too much end there.
#include <arpa/inet.h>
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>

#include <cerrno>
#include <future>
#include <thread>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "core/base/file_descriptor.h"
#include "tests/service/support/inputs.h"
#include "tests/service/support/scrape.h"
#include "tests/service/support/secured_server.h"
#include "tests/support/run_command.h"

namespace spexd::testing {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

// An address of this machine that stands for clients of another.
constexpr char kCrowd[] = "127.0.0.9";
constexpr int kPatienceSeconds = 20;

sockaddr_in Address(const std::string& host, int port) {
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<uint16_t>(port));
  inet_pton(AF_INET, host.c_str(), &address.sin_addr);
  return address;
}

// A connection from an address of this machine.
FileDescriptor ConnectFrom(const std::string& from, int port) {
  FileDescriptor connection(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const timeval patience = {kPatienceSeconds, 0};
  setsockopt(connection.get(), SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
  setsockopt(connection.get(), SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof(patience));
  const sockaddr_in here = Address(from, 0), there = Address("127.0.0.1", port);
  EXPECT_EQ(bind(connection.get(), reinterpret_cast<const sockaddr*>(&here), sizeof(here)), 0);
  connect(connection.get(), reinterpret_cast<const sockaddr*>(&there), sizeof(there));
  return connection;
}

// Whether the proxy ended the connection.
bool IsCut(const FileDescriptor& connection) {
  char byte;
  const ssize_t got = recv(connection.get(), &byte, 1, 0);
  return got == 0 || (got < 0 && errno == ECONNRESET);
}

// A frame of HTTP/2: length, type, flags, stream, payload.
std::string Http2Frame(char type, char flags, uint32_t stream, const std::string& payload) {
  std::string frame;
  const auto append = [&frame](uint32_t value, int bytes) {
    for (int k = bytes - 1; k >= 0; --k) frame += static_cast<char>(value >> (8 * k));
  };
  append(static_cast<uint32_t>(payload.size()), 3);
  frame += {type, flags};
  append(stream, 4);
  return frame + payload;
}

std::string HeaderField(const std::string& name, const std::string& value) {
  return std::string(1, '\0') + static_cast<char>(name.size()) + name + static_cast<char>(value.size()) +
         value;
}

std::string RequestHeaders(const std::string& scheme, const std::string& te) {
  return HeaderField(":method", "POST") + HeaderField(":scheme", scheme) +
         HeaderField(":path", "/spexd.v1.Extraction/Extract") + HeaderField(":authority", "localhost") +
         HeaderField("content-type", "application/grpc") + HeaderField("te", te);
}

// Rapid resets (CVE-2023-44487): streams of Extract that are begun and reset, some at once.
struct Attack {
  const char* name;
  const char* from;  // an address of its own: the fronts remember addresses
  int streams, at_once;
  milliseconds before_reset, after_reset;
};
constexpr Attack kAttacks[] = {
    {"1000 in one write", "127.0.0.2", 20000, 1000, milliseconds(0), milliseconds(0)},
    {"50 each 20 ms", "127.0.0.3", 16000, 50, milliseconds(0), milliseconds(20)},
    {"reset 5 ms later", "127.0.0.4", 16000, 32, milliseconds(5), milliseconds(0)}};
constexpr int kAllStreams = 52000;

// A client that knows no more of HTTP/2 than an attack needs. A connection that the front ends is replaced.
class Attacker {
 public:
  Attacker(std::string from, int port) : from_(std::move(from)), port_(port) {}

  // Sends one request with these headers; waits for those of its answer, or for the end of the connection.
  void Request(const std::string& headers) {
    constexpr char kHeaders = 1;
    constexpr size_t kFrameHead = 9;
    if (!Connect() || !Write(Http2Frame(kHeaders, 5, stream_, headers))) return;
    std::string answer;
    char bytes[16384];
    pollfd readable = {connection_.get(), POLLIN, 0};
    while (true) {
      while (answer.size() >= kFrameHead) {
        const auto at = [&](size_t k) { return static_cast<unsigned char>(answer[k]); };
        const size_t whole = kFrameHead + (size_t{at(0)} << 16 | size_t{at(1)} << 8 | at(2));
        if (answer[3] == kHeaders) return;
        if (answer.size() < whole) break;
        answer.erase(0, whole);
      }
      const int got = SSL_read(tls_.get(), bytes, sizeof(bytes));
      if (got > 0)
        answer.append(bytes, static_cast<size_t>(got));
      else if (SSL_get_error(tls_.get(), got) != SSL_ERROR_WANT_READ ||
               poll(&readable, 1, 1000 * kPatienceSeconds) <= 0)
        return;
    }
  }

  // Until all streams are sent, or the front takes no more connections.
  void Run(const Attack& attack) {
    for (int begun = 0; begun < attack.streams && (alive_ || Connect()); begun += attack.at_once) {
      std::string begins, resets;
      for (int k = 0; k < attack.at_once; ++k, stream_ += 2) {
        std::string& last = attack.before_reset > milliseconds(0) ? resets : begins;
        begins += Http2Frame(1, 4, stream_, headers_);
        last += Http2Frame(3, 0, stream_, std::string("\0\0\0\x08", 4));
      }
      // The pace of the attack, no waits for something to happen.
      alive_ = Write(begins);
      std::this_thread::sleep_for(attack.before_reset);
      alive_ = alive_ && Write(resets);
      std::this_thread::sleep_for(attack.after_reset);
    }
  }

 private:
  bool Connect() {
    ERR_clear_error();  // of the connection before
    connection_ = ConnectFrom(from_, port_);
    tls_.reset(SSL_new(context_.get()));
    const unsigned char protocol[] = {2, 'h', '2'};
    SSL_set_alpn_protos(tls_.get(), protocol, sizeof(protocol));
    SSL_set_mode(tls_.get(), SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
    SSL_set_fd(tls_.get(), connection_.get());
    if (SSL_connect(tls_.get()) != 1) return false;
    fcntl(connection_.get(), F_SETFL, O_NONBLOCK);
    stream_ = 1;
    return Write("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + Http2Frame(4, 0, 0, ""));
  }
  // Reads between the writes, so that answers that nobody takes do not hold up the front. False: it has ended
  // the connection.
  bool Write(absl::string_view bytes) {
    char answers[16384];
    int got;
    while (!bytes.empty()) {
      while ((got = SSL_read(tls_.get(), answers, sizeof(answers))) > 0) continue;
      if (SSL_get_error(tls_.get(), got) != SSL_ERROR_WANT_READ) return false;
      const int wrote = SSL_write(tls_.get(), bytes.data(), static_cast<int>(bytes.size()));
      pollfd ready = {connection_.get(), POLLIN | POLLOUT, 0};
      if (wrote > 0) {
        bytes.remove_prefix(static_cast<size_t>(wrote));
      } else if (SSL_get_error(tls_.get(), wrote) != SSL_ERROR_WANT_WRITE ||
                 poll(&ready, 1, 1000 * kPatienceSeconds) <= 0) {
        return false;
      }
    }
    return true;
  }

  const std::string from_;
  const int port_;
  const std::string headers_ = RequestHeaders("https", "trailers");
  const std::unique_ptr<SSL_CTX, decltype(&SSL_CTX_free)> context_{SSL_CTX_new(TLS_client_method()),
                                                                   &SSL_CTX_free};
  std::unique_ptr<SSL, decltype(&SSL_free)> tls_{nullptr, &SSL_free};
  FileDescriptor connection_{-1};
  uint32_t stream_ = 1;
  bool alive_ = false;
};

class FrontTest : public SecuredServerTest {
 protected:
  FrontTest() { signal(SIGPIPE, SIG_IGN); }  // a front ends connections while an attacker writes
  ~FrontTest() override {
    if (front_ == nullptr) return;
    front_->Signal(SIGTERM);  // nginx's workers end with it
    front_->Wait();
  }

  // Starts spexd behind "haproxy" or "nginx", which takes over a socket that this test listens on: the system
  // chooses the port.
  void StartBehind(const std::string& front) {
    if (RunCommand({front, "-v"}).exit_code != 0) GTEST_SKIP() << front << " is not installed";
    KnowTokens({{"worker", "submit,read"}});
    Start({"--listen", "127.0.0.1:0", "--identities", folder_ / "identities", "--header-seconds", "60"});
    // Left open for the front. nginx accepts on it as it is: where it blocked, so could a worker.
    const FileDescriptor listener(socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0));
    sockaddr_in address = Address("127.0.0.1", 0);
    socklen_t size = sizeof(address);
    ASSERT_EQ(bind(listener.get(), reinterpret_cast<const sockaddr*>(&address), size), 0);
    ASSERT_EQ(listen(listener.get(), 128), 0);
    ASSERT_EQ(getsockname(listener.get(), reinterpret_cast<sockaddr*>(&address), &size), 0);
    port_ = ntohs(address.sin_port);
    if (front == "nginx") return StartNginx(listener.get());
    StartHaproxy(listener.get());
  }
  void StartHaproxy(int listener) {
    WriteBytes(folder_ / "front.pem",
               ReadBytes(certificates_.pem("server")) + ReadBytes(certificates_.key("server")));
    front_ = std::make_unique<Process>(
        std::vector<std::string>{"haproxy", "-db", "-f", Deployed("haproxy/haproxy.cfg")},
        ProcessOptions{.environment = {absl::StrCat("SPEXD_FRONT=fd@", listener),
                                       "SPEXD_FRONT_PEM=" + (folder_ / "front.pem"),
                                       "SPEXD_BACKEND=" + ports_["grpc"].get<std::string>()}});
  }
  void StartNginx(int listener) {
    std::string config = ReadBytes(Deployed("nginx/spexd.conf"));
    const int adapted = absl::StrReplaceAll({{"listen 50052 ", absl::StrCat("listen 127.0.0.1:", port_, " ")},
                                             {"/etc/nginx/spexd.pem", certificates_.pem("server")},
                                             {"/etc/nginx/spexd.key", certificates_.key("server")},
                                             {"127.0.0.1:50051", ports_["grpc"].get<std::string>()},
                                             {"/run/nginx.pid", folder_ / "nginx.pid"}},
                                            &config);
    ASSERT_EQ(adapted, 5);
    WriteBytes(folder_ / "nginx.conf", config);
    front_ = std::make_unique<Process>(
        std::vector<std::string>{"nginx", "-e", "stderr", "-g", "daemon off;", "-c", folder_ / "nginx.conf"},
        ProcessOptions{.environment = {absl::StrCat("NGINX=", listener, ";")}});
  }
  static std::string Deployed(const std::string& file) {
    return std::string(SPEXD_SOURCE_DIR) + "/deploy/" + file;
  }
  client::ServerAddress ThroughTheFront() const {
    client::ServerAddress server = By("worker");
    server.address = absl::StrCat("localhost:", port_);
    return server;
  }
  double Metric(const std::string& series) const { return ScrapedMetric(Http(), series); }
  // Calls that reached spexd.
  double Calls() const {
    double calls = 0;
    for (const char* decision : {"allowed", "unauthenticated", "denied"})
      calls += Metric(absl::StrCat("spexd_access_total{decision=\"", decision, "\"}"));
    return calls;
  }
  static bool Eventually(const std::function<bool()>& condition) {
    const auto deadline = steady_clock::now() + std::chrono::minutes(1);
    while (!condition() && steady_clock::now() < deadline) std::this_thread::yield();
    return condition();
  }

  std::unique_ptr<Process> front_;
  int port_ = 0;
};

class EachFrontTest : public FrontTest, public ::testing::WithParamInterface<const char*> {
 protected:
  void SetUp() override { StartBehind(GetParam()); }
};

class HaproxyTest : public FrontTest {
 protected:
  void SetUp() override { StartBehind("haproxy"); }
};

class NginxTest : public FrontTest {
 protected:
  void SetUp() override { StartBehind("nginx"); }
};

TEST_P(EachFrontTest, AJobGoesThrough) {
  WritePreprocFile(folder_ / "preproc.fits");
  const RunResult job =
      Spex({"-i", folder_ / "preproc.fits", "-p", folder_ / "psf.fits", "--upload", "--bundlesize", "5", "-o",
            folder_ / "frame.fits", "--server", ThroughTheFront().address, "--tls-ca",
            certificates_.pem("authority"), "--token-file", folder_ / "worker-token"});
  EXPECT_EQ(job.code, 0) << job.output << front_->output();
  EXPECT_EQ(AuditLine("Extract", "allowed")["identity"], "worker");
  client::ServerAddress nobody = ThroughTheFront();
  nobody.token_file = "";
  EXPECT_TRUE(absl::IsUnauthenticated(Ask(nobody)));
  nobody.tls_ca = "";
  EXPECT_TRUE(absl::IsUnavailable(Ask(nobody)));
}

TEST_P(EachFrontTest, RapidResetsEndThereWhileOthersAreServed) {
  ASSERT_TRUE(Ask(ThroughTheFront()).ok());
  const double before = Metric("process_resident_memory_bytes");
  for (const Attack& attack : kAttacks) {
    const std::future<void> attacked =
        std::async(std::launch::async, [&] { Attacker(attack.from, port_).Run(attack); });
    const auto since = steady_clock::now();
    EXPECT_TRUE(Ask(ThroughTheFront()).ok()) << attack.name;
    EXPECT_LT(steady_clock::now() - since, std::chrono::seconds(5)) << attack.name;
    attacked.wait();
  }
  EXPECT_LT(Calls(), kAllStreams / 20);
  EXPECT_TRUE(Eventually([&] { return Metric("spexd_streams") == 0; }));
  constexpr double kStays = 32 << 20;  // threads and pools of gRPC
  EXPECT_TRUE(Eventually([&] { return Metric("process_resident_memory_bytes") < before + kStays; }))
      << Metric("process_resident_memory_bytes") << " bytes, before " << before;
}

TEST_P(EachFrontTest, CallsBeyondTheRateAreToldWhenToComeAgain) {
  const auto connection = *client::Connect(ThroughTheFront());
  const auto soon = client::Clock::now() + std::chrono::seconds(60);
  client::CallResult result;
  int calls = 0;
  do {
    const auto call = connection->Extract(soon);
    call->WritesDone();
    v1::ExtractEvent event;
    while (call->Read(&event)) continue;
    result = call->Finish();
  } while (absl::IsInvalidArgument(result.status) && ++calls < 5000);
  EXPECT_TRUE(absl::IsResourceExhausted(result.status)) << result.status;
  EXPECT_EQ(result.retry_delay, std::chrono::seconds(1));
  EXPECT_GE(calls, 500);
}

TEST_P(EachFrontTest, HeadersByWhichGrpc151AbortsEndThere) {
  // CVE-2023-1428: one of three, and more than 8 KiB of others after it.
  std::string others;
  for (int k = 0; k < 100; ++k) others += HeaderField(absl::StrCat("x-", k), std::string(100, 'x'));
  for (const std::string& headers :
       {RequestHeaders("x", "trailers"), RequestHeaders("https", "x"),
        RequestHeaders("https", "trailers") + HeaderField("grpclb_client_stats", "x")}) {
    Attacker("127.0.0.5", port_).Request(headers + others);
    EXPECT_TRUE(Ask(ThroughTheFront()).ok());
  }
}

TEST_P(EachFrontTest, OtherPathsEndThere) {
  ASSERT_TRUE(Ask(ThroughTheFront()).ok());
  const auto status_of = [this](const std::string& path) {
    return RunCommand({"curl", "--silent", "--http2", "--cacert", certificates_.pem("authority"),
                       "--write-out", "%{http_code}", "--output", "/dev/null",
                       absl::StrCat("https://localhost:", port_, path)})
        .output;
  };
  EXPECT_EQ(status_of("/metrics"), "404");
  EXPECT_EQ(status_of("/spexd.v1.Extraction/GetCapabilities"), "400") << "no content of gRPC";
  EXPECT_EQ(Calls(), 1);
}

INSTANTIATE_TEST_SUITE_P(Fronts, EachFrontTest, ::testing::Values("haproxy", "nginx"),
                         [](const auto& front) { return std::string(front.param); });

TEST_F(HaproxyTest, TooManyConnectionsOfAnAddressEndThere) {
  ASSERT_TRUE(Ask(ThroughTheFront()).ok());
  constexpr size_t kAllowed = 64, kMore = 16;
  std::vector<FileDescriptor> crowd;
  std::vector<pollfd> open;
  while (crowd.size() < kAllowed + kMore) {
    crowd.push_back(ConnectFrom(kCrowd, port_));
    open.push_back({crowd.back().get(), POLLIN, 0});
  }
  // Which ones are cut depends on the order in which the proxy's threads take them.
  while (open.size() > kAllowed) {
    ASSERT_GT(poll(open.data(), open.size(), 1000 * kPatienceSeconds), 0) << open.size() << " are open";
    std::erase_if(open, [](const pollfd& connection) { return connection.revents != 0; });
  }
  EXPECT_EQ(poll(open.data(), open.size(), 0), 0);
  EXPECT_TRUE(Ask(ThroughTheFront()).ok());
}

TEST_F(NginxTest, TooManyStreamsOfAnAddressAreRefusedOnAnyConnection) {
  constexpr size_t kAllowed = 64, kOnAConnection = 32;
  const auto soon = client::Clock::now() + std::chrono::seconds(60);
  std::vector<std::unique_ptr<client::Connection>> connections;
  std::vector<std::unique_ptr<client::ExtractStream>> streams;
  while (streams.size() < kAllowed) {
    if (streams.size() % kOnAConnection == 0) connections.push_back(*client::Connect(ThroughTheFront()));
    streams.push_back(connections.back()->Extract(soon));
    ASSERT_TRUE(Eventually([&] { return Metric("spexd_streams") == static_cast<double>(streams.size()); }));
  }
  connections.push_back(*client::Connect(ThroughTheFront()));
  const auto one_more = connections.back()->Extract(soon);
  v1::ExtractEvent event;
  EXPECT_FALSE(one_more->Read(&event));
  const client::CallResult refused = one_more->Finish();
  EXPECT_TRUE(absl::IsResourceExhausted(refused.status)) << refused.status;
  EXPECT_EQ(refused.retry_delay, std::chrono::seconds(1));
  streams.clear();
  EXPECT_TRUE(Eventually([&] { return Ask(ThroughTheFront()).ok(); }));
}

TEST_F(NginxTest, ConnectionsThatSendNothingEndInTime) {
  ASSERT_TRUE(Ask(ThroughTheFront()).ok());
  EXPECT_TRUE(IsCut(ConnectFrom(kCrowd, port_)));
}

}  // namespace
}  // namespace spexd::testing
