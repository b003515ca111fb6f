// The messages to systemd, received by a test in its place; and the unit's file.
#include "server/operation/service_manager.h"

#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <map>

#include "absl/strings/match.h"
#include "absl/strings/str_replace.h"
#include "core/base/file_descriptor.h"
#include "nlohmann/json.hpp"
#include "tests/service/support/harness.h"
#include "tests/support/build_paths.h"
#include "tests/support/matchers.h"
#include "tests/support/process.h"
#include "tests/support/run_command.h"

namespace spexd::testing {
namespace {

// The socket of a service manager.
class Listener {
 public:
  explicit Listener(std::string path)
      : path_(std::move(path)), socket_(socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0)) {
    sockaddr_un address = {.sun_family = AF_UNIX, .sun_path = {}};
    path_.copy(address.sun_path, sizeof(address.sun_path) - 1);
    EXPECT_EQ(bind(socket_.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)), 0);
  }
  const std::string& path() const { return path_; }
  // Returns the next message; "" if none arrives within a minute.
  std::string Next() const {
    pollfd waiting = {socket_.get(), POLLIN, 0};
    if (poll(&waiting, 1, 60000) != 1) return "";
    char text[4096];
    const ssize_t size = recv(socket_.get(), text, sizeof(text), 0);
    return std::string(text, size > 0 ? static_cast<size_t>(size) : 0);
  }
  // Returns the next message that has a line of this kind.
  std::string NextWith(const std::string& line) const {
    for (;;) {
      const std::string message = Next();
      if (message.empty() || absl::StrContains(message, line)) return message;
    }
  }

 private:
  const std::string path_;
  const FileDescriptor socket_;
};

class ServiceManagerTest : public ServiceTest {
 protected:
  std::optional<ServiceManager> Find(const std::map<std::string, std::string>& variables) {
    return ServiceManager::Find([&](const char* name) {
      const auto found = variables.find(name);
      return found == variables.end() ? nullptr : found->second.c_str();
    });
  }
  const Listener manager_{folder_ / "notify"};
};

TEST_F(ServiceManagerTest, IsFoundByTheEnvironment) {
  EXPECT_FALSE(Find({}).has_value());
  EXPECT_FALSE(Find({{"NOTIFY_SOCKET", "vsock:2:1"}}).has_value());
  EXPECT_FALSE(Find({{"NOTIFY_SOCKET", "/a"}})->watchdog().has_value());
  EXPECT_EQ(Find({{"NOTIFY_SOCKET", "/a"}, {"WATCHDOG_USEC", "3000000"}})->watchdog(),
            std::chrono::seconds(3));
  // A watchdog for another process does not apply.
  EXPECT_FALSE(Find({{"NOTIFY_SOCKET", "/a"}, {"WATCHDOG_USEC", "3000000"}, {"WATCHDOG_PID", "1"}})
                   ->watchdog()
                   .has_value());
}

TEST_F(ServiceManagerTest, IsToldWhenTheServerIsReadyAndOnlyWhileItLives) {
  const auto manager = Find({{"NOTIFY_SOCKET", manager_.path()}, {"WATCHDOG_USEC", "600000"}});
  std::atomic<bool> alive = true, ready = false;
  const Heartbeat heartbeat(&*manager, {.why_not_alive = [&] { return alive ? "" : "the port is\ndead"; },
                                        .why_not_ready = [&] { return ready ? "" : "loading PSFs"; },
                                        .status = [] { return "2 jobs run"; }});
  EXPECT_EQ(manager_.Next(), "WATCHDOG=1\nSTATUS=loading PSFs");
  heartbeat.AroundReload([] {});  // before READY=1 a reload is not announced
  ready = true;
  EXPECT_EQ(manager_.NextWith("READY=1"), "READY=1\nWATCHDOG=1\nSTATUS=2 jobs run");
  EXPECT_EQ(manager_.Next(), "WATCHDOG=1\nSTATUS=2 jobs run");
  alive = false;
  EXPECT_EQ(manager_.NextWith("dead"), "STATUS=the port is dead");
  EXPECT_EQ(manager_.Next(), "STATUS=the port is dead");
  alive = true;
  EXPECT_EQ(manager_.NextWith("WATCHDOG=1"), "WATCHDOG=1\nSTATUS=2 jobs run");
}

TEST_F(ServiceManagerTest, HearsOfTheProgramsWholeLife) {
  Process spexd({BinFolder() + "/spexd", "--listen", "127.0.0.1:0", "--http", "none", "--device", "cpu",
                 "--threads", "1", "--port-file", folder_ / "ports.json", "--allow-root", folder_.path()},
                {.environment = {"NOTIFY_SOCKET=" + manager_.path(), "WATCHDOG_USEC=1500000"}});
  EXPECT_THAT(manager_.Next(), StartsWith("READY=1\nWATCHDOG=1\nSTATUS=0 jobs run"));
  // The server must answer by now.
  const auto ports = nlohmann::json::parse(ReadBytes(folder_ / "ports.json"));
  const auto stub = v1::Extraction::NewStub(
      grpc::CreateChannel(ports["grpc"].get<std::string>(), grpc::InsecureChannelCredentials()));
  grpc::ClientContext asking;
  v1::Capabilities status;
  EXPECT_TRUE(stub->GetCapabilities(&asking, {}, &status).ok());
  EXPECT_THAT(manager_.Next(), StartsWith("WATCHDOG=1\n"));

  spexd.Signal(SIGHUP);
  EXPECT_EQ(manager_.NextWith("RELOADING"), "RELOADING=1");
  EXPECT_EQ(manager_.NextWith("READY"), "READY=1");

  // A job delays the drain; the watchdog is fed meanwhile.
  grpc::ClientContext context;
  const auto stream = stub->Extract(&context);
  v1::ExtractRequest request;
  *request.mutable_header() = RawHeader();
  stream->Write(request);
  v1::ExtractEvent accepted;
  ASSERT_TRUE(stream->Read(&accepted));
  spexd.Signal(SIGTERM);
  EXPECT_THAT(manager_.NextWith("STOPPING"), StartsWith("STOPPING=1\n"));
  // A heartbeat that was being sent may still arrive first.
  for (int k = 0; k < 3; ++k) EXPECT_THAT(manager_.NextWith("draining"), StartsWith("WATCHDOG=1\n"));
  context.TryCancel();
  EXPECT_EQ(spexd.Wait(), 0);
}

TEST(UnitFileTest, IsGoodInTheEyesOfSystemd) {
  if (RunCommand({"systemd-analyze", "--version"}).exit_code != 0) GTEST_SKIP() << "systemd is not installed";
  const TempFolder folder;
  // systemd checks that the program exists.
  WriteText(folder / "spexd.service",
            absl::StrReplaceAll(ReadBytes(SourceFolder() + "/deploy/systemd/spexd.service"),
                                {{"/usr/local/bin/spexd", BinFolder() + "/spexd"}}));
  EXPECT_THAT(RunCommand({"systemd-analyze", "verify", "--man=no", folder / "spexd.service"}),
              ExitsWith(0, Not(HasSubstr("spexd.service"))));
}

// The exposure is a number from 0 to 10 that summarises what the service may do.
TEST(UnitFileTest, HasAnExposureOfAtMostTwoInTheEyesOfSystemd) {
  if (RunCommand({"systemd-analyze", "--version"}).exit_code != 0) GTEST_SKIP() << "systemd is not installed";
  const CommandResult analysed =
      RunCommand({"systemd-analyze", "security", "--no-pager", "--offline=true", "--threshold=20",
                  SourceFolder() + "/deploy/systemd/spexd.service"});
  if (absl::StrContains(analysed.output, "unrecognized option")) {
    GTEST_SKIP() << "systemd is older than 250 and judges no files";
  }
  EXPECT_THAT(analysed, ExitsWith(0, HasSubstr("Overall exposure level")));
}

}  // namespace
}  // namespace spexd::testing
