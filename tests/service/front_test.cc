// nginx, as deploy/nginx configures it, in front of the real spexd: jobs pass through it, and excessive
// requests of clients end there.
#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <future>
#include <thread>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "core/base/file_descriptor.h"
#include "tests/service/support/inputs.h"
#include "tests/service/support/scrape.h"
#include "tests/service/support/secured_server.h"
#include "tests/support/build_paths.h"
#include "tests/support/eventually.h"
#include "tests/support/matchers.h"
#include "tests/support/run_command.h"

namespace spexd::testing {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

// An address of this machine that stands for clients on another machine.
constexpr char kCrowd[] = "127.0.0.9";
constexpr int kPatienceSeconds = 20;

sockaddr_in Address(const std::string& host, int port) {
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<uint16_t>(port));
  inet_pton(AF_INET, host.c_str(), &address.sin_addr);
  return address;
}

// Connects from an address of this machine.
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

// Returns whether the proxy ended the connection.
bool IsCut(const FileDescriptor& connection) {
  char byte;
  const ssize_t got = recv(connection.get(), &byte, 1, 0);
  return got == 0 || (got < 0 && errno == ECONNRESET);
}

// Returns an HTTP/2 frame: length, type, flags, stream, payload.
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

constexpr char kHeaders = 1, kReset = 3, kGoAway = 7, kContinuation = 9;
constexpr size_t kFrameHead = 9, kMaxPayload = 16384;

// Returns a complete request with these headers and without a body, as the first stream of a connection. It
// consists of as few frames as possible, with at most `most` bytes of headers each.
std::string RequestFrames(const std::string& headers, size_t most = kMaxPayload) {
  std::string frames;
  for (size_t at = 0; at < headers.size(); at += most) {
    const char ends_headers = at + most >= headers.size() ? 4 : 0;
    const std::string part = headers.substr(at, most);
    frames += at == 0 ? Http2Frame(kHeaders, static_cast<char>(1 | ends_headers), 1, part)
                      : Http2Frame(kContinuation, ends_headers, 1, part);
  }
  return frames;
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

// Rapid resets (CVE-2023-44487): streams of Extract that are begun and reset, some of them at once.
struct Attack {
  const char* name;
  const char* from;  // a separate address, because the front remembers addresses
  int streams, at_once;
  milliseconds before_reset, after_reset;
};
constexpr Attack kAttacks[] = {
    {"1000 in one write", "127.0.0.2", 20000, 1000, milliseconds(0), milliseconds(0)},
    {"50 each 20 ms", "127.0.0.3", 16000, 50, milliseconds(0), milliseconds(20)},
    {"reset 5 ms later", "127.0.0.4", 16000, 32, milliseconds(5), milliseconds(0)}};
constexpr int kAllStreams = 52000;

// Headers with which one request costs gRPC 1.51 much memory or time (CVE-2023-33953).
struct Flood {
  const char* name;
  std::string headers;
  size_t max_in_a_frame;
};
std::vector<Flood> Floods() {
  constexpr size_t kMiB = 1 << 20;
  const std::string request = RequestHeaders("https", "trailers");
  const std::string field = request + std::string(1, '\0') + "\x03x-a";
  std::string many = request;
  for (int k = 0; k < 10000; ++k) many += HeaderField(absl::StrCat("x-", k), std::string(100, 'x'));
  return {{"10000 fields", many, kMaxPayload},
          {"4 GiB announced", field + "\x7f\x81\xff\xff\xff\x0f" + std::string(kMiB, 'x'), kMaxPayload},
          {"a length with 1 MiB of zeros", field + "\x7f" + std::string(kMiB, '\x80') + '\0', kMaxPayload},
          {"a byte in a frame", field + "\x7f\xa1\x9b\x01" + std::string(20000, 'x'), 1},
          {"a table of 1 GiB", "\x3f\xe1\xff\xff\xff\x03" + request, kMaxPayload}};
}

// A client that implements only as much of HTTP/2 as an attack needs.
class Attacker {
 public:
  Attacker(std::string from, int port) : from_(std::move(from)), port_(port) {}

  // Sends these frames on a new connection. Returns whether the front answers them with headers, resets their
  // stream or ends their connection.
  bool IsAnswered(const std::string& frames) {
    if (!Connect()) return false;
    Write(frames);
    pollfd readable = {connection_.get(), POLLIN, 0};
    while (!HasAnswer()) {
      if (Read()) return true;
      if (!HasAnswer() && poll(&readable, 1, 1000 * kPatienceSeconds) <= 0) return false;
    }
    return true;
  }

  // Begins and resets the streams of the attack. Replaces connections that the front ends. Returns the number
  // of streams that were sent with their resets, which is lower if the front takes no more connections.
  int Run(const Attack& attack) {
    constexpr int kMaxInVain = 30;
    int sent = 0;
    for (int in_vain = 0; sent < attack.streams && in_vain < kMaxInVain; ++in_vain) {
      if (!alive_ && !(alive_ = Connect())) continue;
      const int more = Burst(attack, std::min(attack.at_once, attack.streams - sent));
      sent += more;
      if (more > 0) in_vain = 0;
    }
    return sent;
  }

 private:
  // Returns the number of streams that were sent with their resets.
  int Burst(const Attack& attack, int streams) {
    const bool apart = attack.before_reset > milliseconds(0);
    std::string begins, resets;
    std::string& last = apart ? resets : begins;
    for (int k = 0; k < streams; ++k, stream_ += 2) {
      begins += Http2Frame(kHeaders, 4, stream_, headers_);
      last += Http2Frame(kReset, 0, stream_, std::string("\0\0\0\x08", 4));
    }
    answers_.clear();
    // Waits only for the pace of the attack, not for an event.
    size_t wrote = Write(begins);
    alive_ = wrote == begins.size();
    if (apart) {
      std::this_thread::sleep_for(attack.before_reset);
      wrote = alive_ ? Write(resets) : 0;
      alive_ = wrote == resets.size();
    }
    std::this_thread::sleep_for(attack.after_reset);
    const size_t bytes_of_each = last.size() / static_cast<size_t>(streams);
    return static_cast<int>(wrote / bytes_of_each);
  }
  bool Connect() {
    ERR_clear_error();  // errors of the previous connection
    answers_.clear();
    connection_ = ConnectFrom(from_, port_);
    tls_.reset(SSL_new(context_.get()));
    const unsigned char protocol[] = {2, 'h', '2'};
    SSL_set_alpn_protos(tls_.get(), protocol, sizeof(protocol));
    SSL_set_mode(tls_.get(), SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
    SSL_set_fd(tls_.get(), connection_.get());
    if (SSL_connect(tls_.get()) != 1) return false;
    fcntl(connection_.get(), F_SETFL, O_NONBLOCK);
    stream_ = 1;
    const std::string greeting = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + Http2Frame(4, 0, 0, "");
    return Write(greeting) == greeting.size();
  }
  // Reads what has arrived. Returns whether the front has ended the connection.
  bool Read() {
    char bytes[16384];
    int got;
    while ((got = SSL_read(tls_.get(), bytes, sizeof(bytes))) > 0)
      answers_.append(bytes, static_cast<size_t>(got));
    return SSL_get_error(tls_.get(), got) != SSL_ERROR_WANT_READ;
  }
  // Writes, and reads between the writes so that unread answers do not block the front. Returns the number of
  // bytes written before the front ended the connection.
  size_t Write(const std::string& bytes) {
    size_t written = 0;
    while (written < bytes.size() && !Read()) {
      const int wrote =
          SSL_write(tls_.get(), bytes.data() + written, static_cast<int>(bytes.size() - written));
      pollfd ready = {connection_.get(), POLLIN | POLLOUT, 0};
      if (wrote > 0) {
        written += static_cast<size_t>(wrote);
      } else if (SSL_get_error(tls_.get(), wrote) != SSL_ERROR_WANT_WRITE ||
                 poll(&ready, 1, 1000 * kPatienceSeconds) <= 0) {
        break;
      }
    }
    return written;
  }
  // Returns whether the received frames include headers, a reset or the connection's last frame.
  bool HasAnswer() const {
    for (size_t at = 0; at + kFrameHead <= answers_.size();) {
      const auto byte = [&](size_t k) { return static_cast<unsigned char>(answers_[at + k]); };
      if (byte(3) == kHeaders || byte(3) == kReset || byte(3) == kGoAway) return true;
      at += kFrameHead + (size_t{byte(0)} << 16 | size_t{byte(1)} << 8 | byte(2));
    }
    return false;
  }

  const std::string from_;
  const int port_;
  const std::string headers_ = RequestHeaders("https", "trailers");
  const std::unique_ptr<SSL_CTX, decltype(&SSL_CTX_free)> context_{SSL_CTX_new(TLS_client_method()),
                                                                   &SSL_CTX_free};
  std::unique_ptr<SSL, decltype(&SSL_free)> tls_{nullptr, &SSL_free};
  FileDescriptor connection_{-1};
  std::string answers_;  // of this connection
  uint32_t stream_ = 1;
  bool alive_ = false;
};

class FrontTest : public SecuredServerTest {
 protected:
  FrontTest() { signal(SIGPIPE, SIG_IGN); }  // a front may end a connection while an attacker writes
  ~FrontTest() override {
    if (front_ == nullptr) return;
    front_->Signal(SIGTERM);  // also ends nginx's workers
    front_->Wait();
  }

  void SetUp() override {
    if (RunCommand({"nginx", "-v"}).exit_code != 0) GTEST_SKIP() << "nginx is not installed";
    KnowTokens({{"worker", "submit,read"}},
               client_authority_.empty() ? "" : "subject read certificate CN=worker,O=Lab\n");
    Start({"--listen", "127.0.0.1:0", "--identities", folder_ / "identities", "--header-seconds", "60"});
    // Left open for nginx, which takes over the socket, because the system chooses the port. The socket does
    // not block: otherwise a worker of nginx, which accepts on it as it is, could block.
    const FileDescriptor listener(socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0));
    sockaddr_in address = Address("127.0.0.1", 0);
    socklen_t size = sizeof(address);
    ASSERT_EQ(bind(listener.get(), reinterpret_cast<const sockaddr*>(&address), size), 0);
    ASSERT_EQ(listen(listener.get(), 128), 0);
    ASSERT_EQ(getsockname(listener.get(), reinterpret_cast<sockaddr*>(&address), &size), 0);
    port_ = ntohs(address.sin_port);
    StartNginx(listener.get());
  }
  void StartNginx(int listener) {
    std::string config = ReadBytes(Deployed("nginx/spexd.conf"));
    std::vector<std::pair<std::string, std::string>> changes = {
        {"listen 50052 ", absl::StrCat("listen 127.0.0.1:", port_, " ")},
        {"/etc/nginx/spexd.pem", certificates_.pem("server")},
        {"/etc/nginx/spexd.key", certificates_.key("server")},
        {"127.0.0.1:50051", ports_["grpc"].get<std::string>()},
        {"/run/nginx.pid", folder_ / "nginx.pid"}};
    if (!client_authority_.empty()) {
      changes.emplace_back("#   ssl_client_certificate /etc/nginx/clients.pem;",
                           "ssl_client_certificate " + certificates_.pem(client_authority_) + ";");
      changes.emplace_back("#   ssl_verify_client on;", "ssl_verify_client on;");
    }
    ASSERT_EQ(absl::StrReplaceAll(changes, &config), static_cast<int>(changes.size()));
    WriteBytes(folder_ / "nginx.conf", config);
    front_ = std::make_unique<Process>(
        std::vector<std::string>{"nginx", "-e", "stderr", "-g", "daemon off;", "-c", folder_ / "nginx.conf"},
        ProcessOptions{.environment = {absl::StrCat("NGINX=", listener, ";")}});
  }
  static std::string Deployed(const std::string& file) { return SourceFolder() + "/deploy/" + file; }
  client::ServerAddress ThroughTheFront() const {
    client::ServerAddress server = By("worker");
    server.address = absl::StrCat("localhost:", port_);
    return server;
  }
  double Metric(const std::string& series) const { return ScrapedMetric(Http(), series); }
  // Returns the number of calls that reached spexd.
  double Calls() const {
    double calls = 0;
    for (const char* decision : {"allowed", "unauthenticated", "denied"})
      calls += Metric(absl::StrCat("spexd_access_total{decision=\"", decision, "\"}"));
    return calls;
  }

  // The authority of the certificates that the front requires from clients; "": it requires none.
  std::string client_authority_;
  std::unique_ptr<Process> front_;
  int port_ = 0;
};

class FrontWithCertificatesTest : public FrontTest {
 protected:
  void SetUp() override {
    client_authority_ = "clients";
    certificates_.MakeAuthority("clients");
    FrontTest::SetUp();
  }
  client::ServerAddress WithCertificate(const std::string& name) const {
    client::ServerAddress server = ThroughTheFront();
    server.tls_cert = certificates_.pem(name);
    server.tls_key = certificates_.key(name);
    return server;
  }
};

TEST_F(FrontTest, AJobGoesThrough) {
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

TEST_F(FrontTest, RapidResetsEndThereWhileOthersAreServed) {
  ASSERT_TRUE(Ask(ThroughTheFront()).ok());
  const double before = Metric("process_resident_memory_bytes");
  int sent = 0;
  for (const Attack& attack : kAttacks) {
    std::future<int> attacked =
        std::async(std::launch::async, [&] { return Attacker(attack.from, port_).Run(attack); });
    const auto since = steady_clock::now();
    EXPECT_TRUE(Ask(ThroughTheFront()).ok()) << attack.name;
    EXPECT_LT(steady_clock::now() - since, std::chrono::seconds(5)) << attack.name;
    sent += attacked.get();
  }
  EXPECT_EQ(sent, kAllStreams) << "streams sent with their resets";
  EXPECT_LT(Calls(), sent / 20) << "calls that reached spexd";
  EXPECT_TRUE(Eventually([&] { return Metric("spexd_streams") == 0; }));
  constexpr double kStays = 32 << 20;  // threads and pools of gRPC that remain
  EXPECT_TRUE(Eventually([&] { return Metric("process_resident_memory_bytes") < before + kStays; }))
      << Metric("process_resident_memory_bytes") << " bytes, before " << before;
}

TEST_F(FrontTest, CallsBeyondTheRateAreToldWhenToComeAgain) {
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

TEST_F(FrontTest, HeadersByWhichGrpc151AbortsEndThere) {
  // CVE-2023-1428: one of three headers, followed by more than 8 KiB of others.
  std::string others;
  for (int k = 0; k < 100; ++k) others += HeaderField(absl::StrCat("x-", k), std::string(100, 'x'));
  for (const std::string& headers :
       {RequestHeaders("x", "trailers"), RequestHeaders("https", "x"),
        RequestHeaders("https", "trailers") + HeaderField("grpclb_client_stats", "x")}) {
    EXPECT_TRUE(Attacker("127.0.0.5", port_).IsAnswered(RequestFrames(headers + others)));
    EXPECT_TRUE(Ask(ThroughTheFront()).ok());
  }
}

TEST_F(FrontTest, FloodsOfHeadersEndThere) {
  int asked = 0;
  for (const Flood& flood : Floods()) {
    EXPECT_TRUE(Attacker("127.0.0.6", port_).IsAnswered(RequestFrames(flood.headers, flood.max_in_a_frame)))
        << flood.name;
    EXPECT_TRUE(Ask(ThroughTheFront()).ok()) << flood.name;
    EXPECT_EQ(Calls(), ++asked) << flood.name << " reached spexd";
  }
}

// CVE-2023-32732: gRPC may end the whole connection with all its streams.
TEST_F(FrontTest, BadBase64HarmsNoOtherCall) {
  const auto connection = *client::Connect(ThroughTheFront());
  const auto other = connection->Extract(client::Clock::now() + std::chrono::seconds(60));
  ASSERT_TRUE(Eventually([&] { return Metric("spexd_streams") == 1; }));
  for (const char* name : {"x-bin", "grpc-trace-bin", "grpc-tags-bin"}) {
    const std::string headers = RequestHeaders("https", "trailers") + HeaderField(name, "!not base64!");
    EXPECT_TRUE(Attacker("127.0.0.7", port_).IsAnswered(RequestFrames(headers))) << name;
    EXPECT_TRUE(Ask(ThroughTheFront()).ok()) << name;
  }
  other->WritesDone();
  v1::ExtractEvent event;
  while (other->Read(&event)) continue;
  EXPECT_TRUE(absl::IsInvalidArgument(other->Finish().status)) << "it was ended";
}

TEST_F(FrontTest, OtherPathsEndThere) {
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

TEST_F(FrontWithCertificatesTest, CallersNeedOneAndAToken) {
  certificates_.Make("worker", "clients", "/O=Lab/CN=worker");
  certificates_.Make("expired", "clients", "/O=Lab/CN=worker", -1);
  certificates_.Make("impostor", "authority", "/O=Lab/CN=worker");
  EXPECT_FALSE(Ask(ThroughTheFront()).ok()) << "no certificate";
  for (const char* wrong : {"expired", "impostor"}) EXPECT_FALSE(Ask(WithCertificate(wrong)).ok()) << wrong;
  EXPECT_EQ(Calls(), 0) << "that reached spexd";
  EXPECT_TRUE(Ask(WithCertificate("worker")).ok()) << front_->output();
  const nlohmann::json allowed = AuditLine("GetCapabilities", "allowed");
  EXPECT_EQ(allowed["identity"], "worker");
  EXPECT_EQ(allowed["via"], "token");
  // spexd does not learn the subject of the certificate, though it has an identity for it.
  client::ServerAddress without_token = WithCertificate("worker");
  without_token.token_file = "";
  EXPECT_THAT(Ask(without_token), StatusIs(absl::StatusCode::kUnauthenticated));
}

TEST_F(FrontTest, TooManyStreamsOfAnAddressAreRefusedOnAnyConnection) {
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

TEST_F(FrontTest, ConnectionsThatSendNothingEndInTime) {
  ASSERT_TRUE(Ask(ThroughTheFront()).ok());
  EXPECT_TRUE(IsCut(ConnectFrom(kCrowd, port_)));
}

}  // namespace
}  // namespace spexd::testing
