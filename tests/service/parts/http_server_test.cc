// The operator's HTTP port with clients that are slow, endless or many.
#include "server/front/http_server.h"

#include <httplib.h>
#include <sys/socket.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "tests/support/loopback.h"
#include "tests/support/matchers.h"

namespace spexd {
namespace {

constexpr auto kPatience = std::chrono::seconds(60);  // a test that waits longer has failed

// A connection whose bytes the test controls.
class RawConnection {
 public:
  // `from`: the connection's own address.
  explicit RawConnection(int port, const char* from = "127.0.0.1")
      : socket_(testing::ConnectOnLoopback("127.0.0.1:" + std::to_string(port), {.source = from})) {
    EXPECT_GE(socket_.get(), 0);
    const timeval patience = {std::chrono::seconds(kPatience).count(), 0};
    setsockopt(socket_.get(), SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
  }

  bool Send(const std::string& bytes) const {
    return ::send(socket_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL) ==
           static_cast<ssize_t>(bytes.size());
  }
  // Returns everything that arrives until the server ends the connection; "still open" if it does not.
  std::string ReadToEnd() const {
    std::string all;
    char piece[4096];
    while (true) {
      const ssize_t got = recv(socket_.get(), piece, sizeof(piece), 0);
      if (got > 0) {
        all.append(piece, static_cast<size_t>(got));
      } else if (got == 0 || errno == ECONNRESET) {
        return all;
      } else {
        return "still open";
      }
    }
  }

 private:
  FileDescriptor socket_;
};

class HttpServerTest : public ::testing::Test {
 protected:
  void Start(const HttpServer::Limits& limits = {}) {
    HttpServer::Handlers handlers;
    handlers.metrics = [] { return "one 1\n"; };
    handlers.why_not_alive = [this] { return why_not_alive_; };
    handlers.why_not_ready = [this] { return why_not_ready_; };
    handlers.status = [] { return std::string(1 << 20, 'x'); };
    handlers.refused = [this] { ++refused_; };
    auto http = HttpServer::Start("127.0.0.1", 0, std::move(handlers), limits);
    ASSERT_TRUE(http.ok()) << http.status();
    http_ = *std::move(http);
  }
  std::pair<int, std::string> Get(const std::string& path) const {
    httplib::Client client("127.0.0.1", http_->port());
    client.set_read_timeout(kPatience);
    const auto result = client.Get(path.c_str());
    return result ? std::pair(result->status, result->body) : std::pair(0, std::string());
  }

  std::string why_not_alive_, why_not_ready_;
  std::atomic<int> refused_ = 0;
  std::unique_ptr<HttpServer> http_;
};

TEST_F(HttpServerTest, AnswersWhatAnOperatorAsks) {
  Start();
  EXPECT_EQ(Get("/livez"), std::pair(200, std::string("ok\n")));
  EXPECT_EQ(Get("/readyz"), std::pair(200, std::string("ok\n")));
  EXPECT_EQ(Get("/metrics"), std::pair(200, std::string("one 1\n")));
  EXPECT_EQ(Get("/").second.size(), size_t{1} << 20);
  EXPECT_EQ(Get("/nothing").first, 404);
  why_not_alive_ = "no listener";
  why_not_ready_ = "no device";
  EXPECT_EQ(Get("/livez"), std::pair(503, std::string("no listener\n")));
  EXPECT_EQ(Get("/readyz"), std::pair(503, std::string("no device\n")));
}

TEST_F(HttpServerTest, RefusesOtherMethods) {
  Start();
  const RawConnection connection(http_->port());
  EXPECT_TRUE(connection.Send("POST /metrics HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\n\r\nabc"));
  EXPECT_THAT(connection.ReadToEnd(), StartsWith("HTTP/1.1 405"));
}

TEST_F(HttpServerTest, GivesWholeAnswersWhateverRangesAreAskedFor) {
  Start();
  const RawConnection connection(http_->port());
  std::string ranges = "0-";
  for (int k = 0; k < 1000; ++k) ranges += ",0-";
  EXPECT_TRUE(connection.Send("GET /metrics HTTP/1.1\r\nHost: x\r\nRange: bytes=" + ranges + "\r\n\r\n"));
  const std::string answer = connection.ReadToEnd();
  EXPECT_THAT(answer, StartsWith("HTTP/1.1 200"));
  EXPECT_LT(answer.size(), 1000u);
}

TEST_F(HttpServerTest, AnswersWhileOtherClientsAreSlow) {
  Start();
  std::vector<RawConnection> slow;
  for (int k = 0; k < 20; ++k) {
    slow.emplace_back(http_->port());
    EXPECT_TRUE(
        slow.back().Send(k % 2 == 0 ? "GET /li" : "GET / HTTP/1.1\r\nHost: x\r\n\r\n"));  // never reads
  }
  EXPECT_EQ(Get("/livez").first, 200);
}

TEST_F(HttpServerTest, EndsAnEndlessRequestLineAndEndlessHeaders) {
  Start();
  for (const std::string& begin : {std::string("GET /"), std::string("GET / HTTP/1.1\r\nX: ")}) {
    const RawConnection connection(http_->port());
    bool open = connection.Send(begin);
    // Far more than the limit and the buffers in between.
    for (int k = 0; k < 256 && open; ++k) open = connection.Send(std::string(64 << 10, 'a'));
    EXPECT_FALSE(open);
    EXPECT_NE(connection.ReadToEnd(), "still open");
  }
  EXPECT_EQ(Get("/livez").first, 200);
}

TEST_F(HttpServerTest, EndsAConnectionWhoseTimeIsOverThoughItStillSends) {
  Start({.request_bytes = size_t{64} << 20, .connection_time = std::chrono::milliseconds(100)});
  const RawConnection connection(http_->port());
  const auto patience = std::chrono::steady_clock::now() + kPatience;
  while (connection.Send("X") && std::chrono::steady_clock::now() < patience) {
  }
  EXPECT_NE(connection.ReadToEnd(), "still open");
}

TEST_F(HttpServerTest, AConnectionBeyondAPeersLimitEndsItsOldestWhateverThatHasSent) {
  for (const char* sent :
       {"", "G", "GET /livez HTTP/1.1\r\nHost: x\r\n", "GET / HTTP/1.1\r\nHost: x\r\n\r\n"}) {
    SCOPED_TRACE(sent);
    refused_ = 0;
    Start({.connections_of_a_peer = 3, .connection_time = kPatience});
    std::vector<RawConnection> idle;
    for (int k = 0; k < 3; ++k) {
      idle.emplace_back(http_->port());
      EXPECT_TRUE(idle.back().Send(sent));
    }
    EXPECT_EQ(Get("/livez").first, 200);
    EXPECT_NE(idle[0].ReadToEnd(), "still open");
    EXPECT_LE(refused_, 1);  // pages of connections that had asked may have been sent before
  }
}

TEST_F(HttpServerTest, APeersLimitEndsNoConnectionOfAnother) {
  Start({.connections_of_a_peer = 3, .connection_time = kPatience});
  const RawConnection other(http_->port(), "127.0.0.2");
  EXPECT_TRUE(other.Send("G"));
  std::vector<RawConnection> idle;
  for (int k = 0; k < 20; ++k) idle.emplace_back(http_->port());
  for (int k = 0; k < 17; ++k) EXPECT_EQ(idle[k].ReadToEnd(), "") << k;
  EXPECT_EQ(refused_, 17);
  EXPECT_TRUE(other.Send("ET /livez HTTP/1.1\r\nHost: x\r\n\r\n"));
  EXPECT_THAT(other.ReadToEnd(), HasSubstr("200 OK"));
}

TEST_F(HttpServerTest, AConnectionBeyondTheLimitEndsTheOldest) {
  Start({.connections = 3, .connections_of_a_peer = 100});
  std::vector<RawConnection> idle;
  for (int k = 0; k < 40; ++k) idle.emplace_back(http_->port());
  for (int k = 0; k < 37; ++k) EXPECT_EQ(idle[k].ReadToEnd(), "") << k;
  EXPECT_EQ(refused_, 37);
  EXPECT_TRUE(idle[37].Send("GET /livez HTTP/1.1\r\nHost: x\r\n\r\n"));
  EXPECT_THAT(idle[37].ReadToEnd(), HasSubstr("200 OK"));
  EXPECT_EQ(Get("/metrics").first, 200);
}

TEST_F(HttpServerTest, EndsAtOnceWhateverItsClientsDo) {
  Start();
  const RawConnection asking(http_->port()), reading(http_->port());
  EXPECT_TRUE(asking.Send("GET /li"));
  EXPECT_TRUE(reading.Send("GET / HTTP/1.1\r\nHost: x\r\n\r\n"));
  http_.reset();
  EXPECT_NE(asking.ReadToEnd(), "still open");
  EXPECT_NE(reading.ReadToEnd(), "still open");
}

TEST_F(HttpServerTest, SaysWhyItCannotListen) {
  Start();
  const auto second = HttpServer::Start("127.0.0.1", http_->port(), {}, {});
  EXPECT_THAT(std::string(second.status().message()), HasSubstr("cannot listen on 127.0.0.1"));
}

}  // namespace
}  // namespace spexd
