// Servers that are replaced by others at other addresses, as a Deployment behind a headless Service does,
// while one spex extracts many frames. All run in a network namespace of their own, with its own addresses
// and its own /etc/hosts, in which a name has the addresses of the servers that are ready.
#include <gtest/gtest.h>
#include <signal.h>

#include <chrono>
#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tests/client/support/small_frame.h"
#include "tests/support/process.h"

namespace spexd::testing {
namespace {

constexpr int kFrames = 100;

class ReplacedServersTest : public ::testing::Test {
 protected:
  using Command = std::vector<std::string>;

  void SetUp() override {
    WriteBytes(hosts_, "127.0.0.1 localhost\n");
    namespace_ = std::make_unique<Process>(Command{
        "unshare", "-rnm", "sh", "-c",
        "ip link set lo up && mount --bind \"$0\" /etc/hosts && echo ready; exec sleep infinity", hosts_});
    if (!namespace_->WaitForLine("ready")) GTEST_SKIP() << "no network namespace: " << namespace_->output();
    for (int k = 0; k < kFrames; ++k) {
      images_.push_back(absl::StrCat(inputs_ / "preproc-r", k, ".fits"));
      std::filesystem::copy(frame_.image(), images_.back());
    }
  }

  Command In(const Command& command) const {
    Command whole = {"nsenter", "-t", absl::StrCat(namespace_->pid()), "-U",
                     "-n",      "-m", "--preserve-credentials"};
    whole.insert(whole.end(), command.begin(), command.end());
    return whole;
  }
  // Starts the server and waits until it answers. The port is the namespace's own.
  void Start(int number) {
    const std::string ports = absl::StrCat(folder_ / "ports", number);
    servers_[number] = std::make_unique<Process>(
        In({BinFolder() + "/spexd", "--listen", absl::StrCat("127.77.0.", number, ":50051"), "--http", "none",
            "--port-file", ports, "--allow-root", inputs_.path(), "--allow-root", frame_.folder(), "--device",
            "cpu", "--threads", "1", "--log-level", "warning"}));
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::minutes(1);
    while (!std::filesystem::exists(ports)) {
      ASSERT_LT(std::chrono::steady_clock::now(), deadline) << "spexd does not start";
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
  }
  // Gives the name the addresses of all servers but `without`.
  void NameServers(int without = 0) {
    std::string hosts = "127.0.0.1 localhost\n";
    for (const auto& server : servers_) {
      if (server.first != without) absl::StrAppend(&hosts, "127.77.0.", server.first, " spexd.test\n");
    }
    WriteBytes(hosts_, hosts);
  }
  // Drains it.
  void Stop(int number) {
    servers_[number]->Signal(SIGTERM);
    EXPECT_EQ(servers_[number]->Wait(), 0) << servers_[number]->output();
    servers_.erase(number);
  }
  void Replace(int old, int by) {
    Start(by);
    NameServers(/*without=*/old);
    Stop(old);
  }

  const SmallFrame frame_{50, 200};
  const TempFolder folder_, inputs_, outputs_;
  const std::string hosts_ = folder_ / "hosts";
  std::vector<std::string> images_;
  std::unique_ptr<Process> namespace_;  // that holds the namespace
  std::map<int, std::unique_ptr<Process>> servers_;
};

TEST_F(ReplacedServersTest, LoseNoFrameOfASpexThatRunsOn) {
  Start(1);
  Start(2);
  NameServers();
  Command command = {BinFolder() + "/spex",
                     "--server",
                     "dns:///spexd.test:50051",
                     "-p",
                     frame_.psf(),
                     "--output-dir",
                     outputs_.path(),
                     "--in-flight",
                     "2",
                     "--progress",
                     "lines",
                     "-i"};
  command.insert(command.end(), images_.begin(), images_.end());
  Process spex(In(command));
  ASSERT_TRUE(spex.WaitForLine("Wrote ")) << spex.output();
  Replace(1, /*by=*/3);
  Replace(2, /*by=*/4);
  // Servers that spex did not know when it started must make the rest.
  EXPECT_LT(outputs_.Entries().size(), kFrames);
  EXPECT_EQ(spex.Wait(), 0) << spex.output();
  EXPECT_EQ(outputs_.Entries().size(), kFrames);
  for (const int number : {3, 4}) Stop(number);
}

}  // namespace
}  // namespace spexd::testing
