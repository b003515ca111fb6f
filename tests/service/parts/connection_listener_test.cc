// Connections are accepted, counted, and refused because of limits; silent ones make room for others; the
// listener itself continues.
#include "server/front/connection_listener.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <list>
#include <memory>
#include <optional>

#include "tests/support/matchers.h"
#include "tests/support/temp_folder.h"

namespace spexd {
namespace {

class ConnectionListenerTest : public ::testing::Test {
 protected:
  void Listen() {
    auto sockets = ListeningSockets::OnPort("127.0.0.1", 0);
    ASSERT_TRUE(sockets.ok()) << sockets.status();
    port_ = sockets->port();
    sockets_.emplace(*std::move(sockets));
  }
  void ListenOnPath() {
    path_ = folder_ / "socket";
    auto sockets = ListeningSockets::OnPath(path_);
    ASSERT_TRUE(sockets.ok()) << sockets.status();
    sockets_.emplace(*std::move(sockets));
  }
  void Accept(const ConnectionListener::Limits& limits) {
    ConnectionListener::Callbacks callbacks;
    callbacks.take = [this](FileDescriptor connection) {
      MutexLock lock(&mutex_);
      taken_.push_back(std::move(connection));
      changed_.NotifyAll();
    };
    callbacks.refused = [this] {
      MutexLock lock(&mutex_);
      ++refused_;
      changed_.NotifyAll();
    };
    listener_ = std::make_unique<ConnectionListener>(*std::move(sockets_), limits, std::move(callbacks));
  }
  FileDescriptor NewSocket(const char* from = "127.0.0.1") const {
    if (!path_.empty()) return FileDescriptor(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    FileDescriptor client(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    const sockaddr_in own = Address(from, 0);
    EXPECT_EQ(bind(client.get(), reinterpret_cast<const sockaddr*>(&own), sizeof(own)), 0);
    return client;
  }
  void Connect(FileDescriptor client) {
    if (path_.empty()) {
      const sockaddr_in where = Address("127.0.0.1", port_);
      ASSERT_EQ(connect(client.get(), reinterpret_cast<const sockaddr*>(&where), sizeof(where)), 0);
    } else {
      sockaddr_un where = {.sun_family = AF_UNIX, .sun_path = {}};
      path_.copy(where.sun_path, sizeof(where.sun_path) - 1);
      ASSERT_EQ(connect(client.get(), reinterpret_cast<const sockaddr*>(&where), sizeof(where)), 0);
    }
    clients_.push_back(std::move(client));
  }
  static void Greet(const FileDescriptor& client) { send(client.get(), "P", 1, MSG_NOSIGNAL); }
  // Connects clients that send something, as gRPC's clients do.
  void Connect(int count) {
    for (int k = 0; k < count; ++k) {
      Connect(NewSocket());
      Greet(clients_.back());
    }
  }
  void ConnectSilently(int count, const char* from = "127.0.0.1") {
    for (int k = 0; k < count; ++k) Connect(NewSocket(from));
  }
  const FileDescriptor& client(int number) const { return *std::next(clients_.begin(), number); }
  // Waits until a client's connection is closed.
  static void AwaitClosed(const FileDescriptor& client) {
    char byte = 0;
    EXPECT_LE(recv(client.get(), &byte, 1, 0), 0);
  }
  static bool IsOpen(const FileDescriptor& client) {
    char byte = 0;
    return recv(client.get(), &byte, 1, MSG_DONTWAIT) < 0 && errno == EAGAIN;
  }
  // Waits until this number of connections was taken or refused.
  void Await(size_t connections) {
    MutexLock lock(&mutex_);
    while (taken_.size() + refused_ < connections) changed_.Wait(&mutex_);
  }
  size_t taken() {
    MutexLock lock(&mutex_);
    return taken_.size();
  }
  void CloseOneTaken() {
    MutexLock lock(&mutex_);
    taken_.pop_front();
  }

  static sockaddr_in Address(const char* host, int port) {
    sockaddr_in address = {};
    address.sin_family = AF_INET;
    address.sin_port = htons(static_cast<uint16_t>(port));
    inet_pton(AF_INET, host, &address.sin_addr);
    return address;
  }

  testing::TempFolder folder_;
  std::string path_;  // "": listens on the port
  int port_ = 0;
  std::optional<ListeningSockets> sockets_;
  std::list<FileDescriptor> clients_;
  Mutex mutex_;
  CondVar changed_;
  std::list<FileDescriptor> taken_ ABSL_GUARDED_BY(mutex_);
  size_t refused_ ABSL_GUARDED_BY(mutex_) = 0;
  std::unique_ptr<ConnectionListener> listener_;
};

TEST_F(ConnectionListenerTest, RefusesWhatExceedsItsLimitUntilOneIsClosed) {
  Listen();
  Accept({.connections = 3, .of_a_peer = 100});
  Connect(3);
  Await(3);
  Connect(2);
  Await(5);
  EXPECT_EQ(taken(), 3u);
  EXPECT_EQ(listener_->connections(), 3);
  EXPECT_EQ(listener_->refused(), 2);
  CloseOneTaken();
  EXPECT_EQ(listener_->connections(), 2);
  Connect(1);
  Await(5);  // one fewer is held, one more has arrived
  EXPECT_EQ(listener_->connections(), 3);
  EXPECT_EQ(listener_->refused(), 2);
}

TEST_F(ConnectionListenerTest, RefusesWhatExceedsTheLimitOfAPeer) {
  Listen();
  Accept({.connections = 100, .of_a_peer = 2});
  Connect(2);
  Await(2);
  Connect(1);
  Await(3);
  EXPECT_EQ(taken(), 2u);
}

TEST_F(ConnectionListenerTest, PassesAConnectionOnOnceItsClientHasSentSomething) {
  Listen();
  Accept({.connections = 2, .of_a_peer = 2});
  ConnectSilently(1);
  Connect(1);  // accepted later, but passed on first
  Await(1);
  EXPECT_EQ(taken(), 1u);
  EXPECT_EQ(listener_->connections(), 2);
  Greet(client(0));
  Await(2);
  EXPECT_EQ(taken(), 2u);
  EXPECT_EQ(listener_->refused(), 0);
}

TEST_F(ConnectionListenerTest, ClosesTheOldestSilentConnectionInFavourOfANewOne) {
  Listen();
  Accept({.connections = 3, .of_a_peer = 100});
  ConnectSilently(3);
  Connect(1);
  Await(2);
  AwaitClosed(client(0));
  EXPECT_TRUE(IsOpen(client(1)));
  EXPECT_EQ(taken(), 1u);
  EXPECT_EQ(listener_->connections(), 3);
  EXPECT_EQ(listener_->refused(), 1);
}

TEST_F(ConnectionListenerTest, ClosesSilentConnectionsOfThePeerWhoseLimitIsReached) {
  Listen();
  Accept({.connections = 100, .of_a_peer = 2});
  ConnectSilently(1, "127.0.0.2");
  ConnectSilently(2);
  Connect(1);
  Await(2);
  AwaitClosed(client(1));
  EXPECT_TRUE(IsOpen(client(0)));
  EXPECT_TRUE(IsOpen(client(2)));
  EXPECT_EQ(taken(), 1u);
}

TEST_F(ConnectionListenerTest, DoesTheSameOnAUnixSocket) {
  ListenOnPath();
  Accept({.connections = 100, .of_a_peer = 2});
  ConnectSilently(2);
  Connect(1);
  Await(2);
  AwaitClosed(client(0));
  EXPECT_TRUE(IsOpen(client(1)));
  EXPECT_EQ(taken(), 1u);
}

TEST_F(ConnectionListenerTest, ClosesSilentConnectionsAfterTheirTime) {
  Listen();
  Accept({.connections = 100, .of_a_peer = 100, .silent = std::chrono::milliseconds(1)});
  ConnectSilently(2);
  AwaitClosed(client(0));
  AwaitClosed(client(1));
  EXPECT_EQ(listener_->connections(), 0);
  EXPECT_EQ(listener_->refused(), 0);
}

TEST_F(ConnectionListenerTest, ASilentConnectionThatItsClientClosedIsInNobodysWay) {
  ListenOnPath();
  Accept({.connections = 1, .of_a_peer = 1});
  ConnectSilently(1);
  clients_.clear();
  Connect(1);
  Await(1);
  EXPECT_EQ(taken(), 1u);
  EXPECT_EQ(listener_->refused(), 0);
}

TEST_F(ConnectionListenerTest, GoesOnWhenThereAreNoDescriptorsLeft) {
  Listen();
  Connect(5);  // these connections wait in the kernel's queue
  const int next = open("/dev/null", O_RDONLY | O_CLOEXEC);
  close(next);
  rlimit limit{}, low{};
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &limit), 0);
  low = limit;
  low.rlim_cur = static_cast<rlim_t>(next) + 4;  // for two of its own and two connections
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &low), 0);
  Accept({.connections = 100, .of_a_peer = 100});
  Await(5);
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &limit), 0);
  EXPECT_LE(taken(), 2u);
  EXPECT_GE(listener_->refused(), 3);
  EXPECT_TRUE(listener_->Check().ok());
  const size_t before = taken();
  Connect(1);
  Await(6);
  EXPECT_EQ(taken(), before + 1);
}

TEST_F(ConnectionListenerTest, ClosesSilentConnectionsWhenThereAreNoDescriptorsLeft) {
  Listen();
  ConnectSilently(5);
  FileDescriptor later = NewSocket();  // made while there are descriptors
  const int next = open("/dev/null", O_RDONLY | O_CLOEXEC);
  close(next);
  rlimit limit{}, low{};
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &limit), 0);
  low = limit;
  low.rlim_cur = static_cast<rlim_t>(next) + 4;
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &low), 0);
  Accept({.connections = 100, .of_a_peer = 100});
  Await(3);  // three are refused
  Connect(std::move(later));
  Greet(clients_.back());
  Await(5);
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &limit), 0);
  EXPECT_EQ(taken(), 1u);
  EXPECT_EQ(listener_->refused(), 4);
  EXPECT_EQ(listener_->connections(), 2);
}

TEST(ListeningSockets, SayWhyAnAddressCannotBeHad) {
  const auto first = ListeningSockets::OnPort("127.0.0.1", 0);
  ASSERT_TRUE(first.ok());
  const auto second = ListeningSockets::OnPort("127.0.0.1", first->port());
  EXPECT_THAT(std::string(second.status().message()), HasSubstr("in use"));
  EXPECT_FALSE(ListeningSockets::OnPort("no.such.host.invalid", 0).ok());
  EXPECT_TRUE(absl::IsInvalidArgument(ListeningSockets::OnPath(std::string(200, 'x')).status()));
}

TEST(ListeningSockets, RemoveTheirFileButNotThatOfAnother) {
  testing::TempFolder folder;
  const std::string path = folder / "socket";
  {
    const auto sockets = ListeningSockets::OnPath(path);
    ASSERT_TRUE(sockets.ok()) << sockets.status();
    EXPECT_THAT(std::string(ListeningSockets::OnPath(path).status().message()),
                HasSubstr("another server listens on"));
    EXPECT_EQ(access(path.c_str(), F_OK), 0);
  }
  EXPECT_NE(access(path.c_str(), F_OK), 0);
  auto replaced = std::make_unique<absl::StatusOr<ListeningSockets>>(ListeningSockets::OnPath(path));
  ASSERT_EQ(rename(path.c_str(), (folder / "moved").c_str()), 0);
  const auto other = ListeningSockets::OnPath(path);
  ASSERT_TRUE(other.ok());
  replaced.reset();
  EXPECT_EQ(access(path.c_str(), F_OK), 0);
}

}  // namespace
}  // namespace spexd
