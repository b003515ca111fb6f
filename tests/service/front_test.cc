// The proxy of deploy/haproxy before the real spexd: jobs go through it, and clients that ask too much end
// there.
#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <httplib.h>
#include <netinet/in.h>
#include <openssl/ssl.h>
#include <poll.h>
#include <sys/socket.h>

#include <cerrno>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "core/base/file_descriptor.h"
#include "tests/service/support/inputs.h"
#include "tests/service/support/secured_server.h"
#include "tests/support/run_command.h"

namespace spexd::testing {
namespace {

using ::testing::HasSubstr;

// Addresses of this machine that stand for clients of others.
constexpr char kAttacker[] = "127.0.0.2";
constexpr char kCrowd[] = "127.0.0.3";
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

// Begins streams of Extract and resets each at once.
std::string RapidResets(int streams) {
  const std::string headers = HeaderField(":method", "POST") + HeaderField(":scheme", "https") +
                              HeaderField(":path", "/spexd.v1.Extraction/Extract") +
                              HeaderField(":authority", "localhost") +
                              HeaderField("content-type", "application/grpc") + HeaderField("te", "trailers");
  std::string bytes = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + Http2Frame(4, 0, 0, "");
  for (int k = 0; k < streams; ++k) {
    const uint32_t stream = 2 * static_cast<uint32_t>(k) + 1;
    bytes += Http2Frame(1, 4, stream, headers) + Http2Frame(3, 0, stream, std::string("\0\0\0\x08", 4));
  }
  return bytes;
}

class FrontTest : public SecuredServerTest {
 protected:
  void SetUp() override {
    if (RunCommand({"haproxy", "-v"}).exit_code != 0) GTEST_SKIP() << "haproxy is not installed";
    KnowTokens({{"worker", "submit,read"}});
    Start({"--listen", "127.0.0.1:0", "--identities", folder_ / "identities"});
    WriteBytes(folder_ / "front.pem",
               ReadBytes(certificates_.pem("server")) + ReadBytes(certificates_.key("server")));
    StartProxy();
  }

  // The proxy takes over a socket that this test listens on, so that the system chooses the port.
  void StartProxy() {
    const FileDescriptor listener(socket(AF_INET, SOCK_STREAM, 0));  // left open for the proxy
    sockaddr_in address = Address("127.0.0.1", 0);
    socklen_t size = sizeof(address);
    ASSERT_EQ(bind(listener.get(), reinterpret_cast<const sockaddr*>(&address), size), 0);
    ASSERT_EQ(listen(listener.get(), 128), 0);
    ASSERT_EQ(getsockname(listener.get(), reinterpret_cast<sockaddr*>(&address), &size), 0);
    port_ = ntohs(address.sin_port);
    proxy_ = std::make_unique<Process>(
        std::vector<std::string>{"haproxy", "-db", "-f",
                                 std::string(SPEXD_SOURCE_DIR) + "/deploy/haproxy/haproxy.cfg"},
        ProcessOptions{.environment = {absl::StrCat("SPEXD_FRONT=fd@", listener.get()),
                                       "SPEXD_FRONT_PEM=" + (folder_ / "front.pem"),
                                       "SPEXD_BACKEND=" + ports_["grpc"].get<std::string>()}});
  }
  client::ServerAddress ThroughTheProxy() const {
    client::ServerAddress server = By("worker");
    server.address = absl::StrCat("localhost:", port_);
    return server;
  }
  // Calls that reached spexd.
  int Calls() const {
    httplib::Client http("127.0.0.1", ports_["http_port"].get<int>());
    int calls = 0;
    const std::string metrics = http.Get("/metrics")->body;
    for (absl::string_view line : absl::StrSplit(metrics, '\n')) {
      double value = 0;
      const bool counts = line.substr(0, 19) == "spexd_access_total{";
      if (counts && absl::SimpleAtod(line.substr(line.rfind(' ') + 1), &value))
        calls += static_cast<int>(value);
    }
    return calls;
  }

  std::unique_ptr<Process> proxy_;
  int port_ = 0;
};

TEST_F(FrontTest, AJobGoesThroughTheProxy) {
  WritePreprocFile(folder_ / "preproc.fits");
  const RunResult job =
      Spex({"-i", folder_ / "preproc.fits", "-p", folder_ / "psf.fits", "--upload", "--bundlesize", "5", "-o",
            folder_ / "frame.fits", "--server", ThroughTheProxy().address, "--tls-ca",
            certificates_.pem("authority"), "--token-file", folder_ / "worker-token"});
  EXPECT_EQ(job.code, 0) << job.output << proxy_->output();
  EXPECT_EQ(AuditLine("Extract", "allowed")["identity"], "worker");
  client::ServerAddress nobody = ThroughTheProxy();
  nobody.token_file = "";
  EXPECT_TRUE(absl::IsUnauthenticated(Ask(nobody)));
  nobody.tls_ca = "";
  EXPECT_TRUE(absl::IsUnavailable(Ask(nobody)));
}

TEST_F(FrontTest, RapidResetsEndAtTheProxyWhileOthersAreServed) {
  ASSERT_TRUE(Ask(ThroughTheProxy()).ok());
  const FileDescriptor connection = ConnectFrom(kAttacker, port_);
  const std::unique_ptr<SSL_CTX, decltype(&SSL_CTX_free)> context(SSL_CTX_new(TLS_client_method()),
                                                                  &SSL_CTX_free);
  const std::unique_ptr<SSL, decltype(&SSL_free)> tls(SSL_new(context.get()), &SSL_free);
  const unsigned char protocol[] = {2, 'h', '2'};
  SSL_set_alpn_protos(tls.get(), protocol, sizeof(protocol));
  SSL_set_fd(tls.get(), connection.get());
  ASSERT_EQ(SSL_connect(tls.get()), 1);
  constexpr int kStreams = 20000;
  const std::string bytes = RapidResets(kStreams);
  SSL_write(tls.get(), bytes.data(), static_cast<int>(bytes.size()));  // the proxy need not take all

  const auto since = std::chrono::steady_clock::now();
  EXPECT_TRUE(Ask(ThroughTheProxy()).ok());
  EXPECT_LT(std::chrono::steady_clock::now() - since, std::chrono::seconds(5));
  EXPECT_LT(Calls(), 1100);  // the rate that the proxy allows, and this test's own
  EXPECT_TRUE(IsCut(ConnectFrom(kAttacker, port_)));
}

TEST_F(FrontTest, TooManyConnectionsOfAnAddressEndAtTheProxy) {
  ASSERT_TRUE(Ask(ThroughTheProxy()).ok());
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
  EXPECT_TRUE(Ask(ThroughTheProxy()).ok());
}

TEST_F(FrontTest, OtherPathsEndAtTheProxy) {
  ASSERT_TRUE(Ask(ThroughTheProxy()).ok());
  const CommandResult other =
      RunCommand({"curl", "--silent", "--http2-prior-knowledge", "--cacert", certificates_.pem("authority"),
                  "--write-out", "%{http_code}", "--output", "/dev/null",
                  absl::StrCat("https://localhost:", port_, "/metrics")});
  EXPECT_EQ(other.output, "404");
  EXPECT_EQ(Calls(), 1);
}

}  // namespace
}  // namespace spexd::testing
