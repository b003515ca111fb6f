// Servers of a name, as in a headless Service, and one spex that extracts many frames. The servers share the
// load, and others at other addresses replace them, as a Deployment does it. The client is in a network
// namespace with its own /etc/hosts, in which the name has the addresses of the ready servers. Each server is
// in its own network namespace, joined to the client's by a bridge.
#include <gtest/gtest.h>
#include <signal.h>

#include <chrono>
#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "tests/client/support/small_frame.h"
#include "tests/support/process.h"

namespace spexd::testing {
namespace {

constexpr int kReplacedFrames = 100;

// $1: the file to use as /etc/hosts.
constexpr char kClient[] = R"(set -e
ip link set lo up
ip link add bridge type bridge
ip address add 10.77.0.254/24 dev bridge
ip link set bridge up
mount --bind "$1" /etc/hosts
echo ready
exec sleep infinity)";

// $1: a process in the client's namespace; $2: the server's number; $3: its log; then the command.
constexpr char kServer[] = R"(set -e
ip link set lo up
ip link add eth0 type veth peer name "server$2" netns "$1"
ip address add "10.77.0.$2/24" dev eth0
ip link set eth0 up
nsenter -t "$1" -n ip link set "server$2" master bridge up
log=$3
shift 3
exec "$@" >"$log" 2>&1)";

class ServersOfANameTest : public ::testing::Test {
 protected:
  using Command = std::vector<std::string>;

  void SetUp() override {
    WriteBytes(hosts_, "127.0.0.1 localhost\n");
    namespace_ = std::make_unique<Process>(Command{"unshare", "-rnm", "sh", "-c", kClient, "client", hosts_});
    if (!namespace_->WaitForLine("ready")) GTEST_SKIP() << "no network namespace: " << namespace_->output();
    for (int k = 0; k < kReplacedFrames; ++k) {
      images_.push_back(absl::StrCat(inputs_ / "preproc-r", k, ".fits"));
      std::filesystem::copy(frame_.image(), images_.back());
    }
  }

  Command In(const Command& command) const {
    return Joined(
        {"nsenter", "-t", absl::StrCat(namespace_->pid()), "-U", "-n", "-m", "--preserve-credentials"},
        command);
  }
  std::string LogOf(int number) const { return absl::StrCat(folder_ / "log", number); }
  // Starts the server and waits until it answers.
  void Start(int number) {
    const std::string ports = absl::StrCat(folder_ / "ports", number);
    Command command = Joined({"unshare", "-n", "sh", "-c", kServer, "server"},
                             {absl::StrCat(namespace_->pid()), absl::StrCat(number), LogOf(number)});
    command.insert(command.end(),
                   {BinFolder() + "/spexd", "--listen", absl::StrCat("10.77.0.", number, ":50051"),
                    "--insecure-any-address", "--http", "none", "--port-file", ports});
    command.insert(command.end(), {"--allow-root", inputs_.path(), "--allow-root", frame_.folder()});
    command.insert(command.end(), {"--device", "cpu", "--threads", "1"});
    servers_[number] = std::make_unique<Process>(In(command));
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::minutes(1);
    while (!std::filesystem::exists(ports)) {
      ASSERT_LT(std::chrono::steady_clock::now(), deadline) << "spexd does not start";
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
  }
  // Gives the name the addresses of all servers except `without`.
  void NameServers(int without = 0) {
    std::string hosts = "127.0.0.1 localhost\n";
    for (const auto& server : servers_) {
      if (server.first != without) absl::StrAppend(&hosts, "10.77.0.", server.first, " spexd.test\n");
    }
    WriteBytes(hosts_, hosts);
  }
  // Drains the server and waits for its end.
  void Stop(int number) {
    servers_[number]->Signal(SIGTERM);
    EXPECT_EQ(servers_[number]->Wait(), 0) << servers_[number]->output() << ReadBytes(LogOf(number));
    servers_.erase(number);
  }
  void Replace(int old, int by) {
    Start(by);
    NameServers(/*without=*/old);
    Stop(old);
  }

  // Returns the number of jobs that the server has done, from its log.
  int JobsOf(int number) const {
    int jobs = 0;
    for (const absl::string_view line : absl::StrSplit(ReadBytes(LogOf(number)), '\n')) {
      jobs +=
          absl::StrContains(line, "\"event\":\"job_ended\"") && absl::StrContains(line, "\"code\":\"ok\"");
    }
    return jobs;
  }
  // Starts a spex that extracts all frames on the servers of the name, `in_flight` at once.
  std::unique_ptr<Process> Extract(int in_flight) const {
    Command command = Joined(
        In({BinFolder() + "/spex", "--server", "dns:///spexd.test:50051", "-p", frame_.psf(), "--output-dir",
            outputs_.path(), "--in-flight", absl::StrCat(in_flight), "--progress", "lines", "-i"}),
        images_);
    return std::make_unique<Process>(command);
  }

  const SmallFrame frame_{50, 200};
  const TempFolder folder_, inputs_, outputs_;
  const std::string hosts_ = folder_ / "hosts";
  std::vector<std::string> images_;
  std::unique_ptr<Process> namespace_;  // process that holds the namespace
  std::map<int, std::unique_ptr<Process>> servers_;
};

TEST_F(ServersOfANameTest, ShareTheFramesWithinATenth) {
  for (const int number : {1, 2, 3, 4}) Start(number);
  NameServers();
  const std::unique_ptr<Process> spex = Extract(/*in_flight=*/4);
  EXPECT_EQ(spex->Wait(), 0) << spex->output();
  EXPECT_EQ(outputs_.Entries().size(), kReplacedFrames);
  for (const int number : {1, 2, 3, 4}) {
    Stop(number);
    EXPECT_NEAR(JobsOf(number), kReplacedFrames / 4, kReplacedFrames / 4 / 10.0) << "server " << number;
  }
}

TEST_F(ServersOfANameTest, LoseNoFrameWhileTheyAreReplacedByOthersAtOtherAddresses) {
  Start(1);
  Start(2);
  NameServers();
  const std::unique_ptr<Process> spex = Extract(/*in_flight=*/2);
  ASSERT_TRUE(spex->WaitForLine("Wrote ")) << spex->output();
  Replace(1, /*by=*/3);
  Replace(2, /*by=*/4);
  // The remaining frames must be extracted by servers that spex did not know when it started.
  EXPECT_LT(outputs_.Entries().size(), kReplacedFrames);
  EXPECT_EQ(spex->Wait(), 0) << spex->output();
  EXPECT_EQ(outputs_.Entries().size(), kReplacedFrames);
  for (const int number : {3, 4}) Stop(number);
}

}  // namespace
}  // namespace spexd::testing
