// A network that is cut. spexd and its clients are in network namespaces, joined by a pair of virtual
// interfaces; one of these goes down, so that packets are lost without notice.
#include <signal.h>

#include <chrono>
#include <fstream>
#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "tests/client/support/small_frame.h"
#include "tests/support/eventually.h"
#include "tests/support/matchers.h"
#include "tests/support/process.h"

namespace spexd::testing {
namespace {

// Bins with which a bundle of two fibres takes some tenths of a second. With sanitizers, which make the
// engine many times slower, the bins are wider: while the network is cut, attempts to connect come at ever
// longer intervals, so a test with longer jobs would take even longer.
#if defined(__SANITIZE_THREAD__)
constexpr char kSomeTenths[] = "6600,6680,0.8";
#elif defined(__SANITIZE_ADDRESS__)
constexpr char kSomeTenths[] = "6600,6680,0.4";
#else
constexpr char kSomeTenths[] = "6600,6680,0.2";
#endif

class NetworkCutTest : public ::testing::Test {
 protected:
  using Command = std::vector<std::string>;

  void SetUp() override {
    const Command stay = {"sh", "-c", "echo ready; exec sleep infinity"};
    server_ = std::make_unique<Process>(Joined({"unshare", "-rn"}, stay));
    if (!server_->WaitForLine("ready")) GTEST_SKIP() << "no network namespace: " << server_->output();
    client_ = std::make_unique<Process>(
        Joined({"nsenter", "-t", Id(*server_), "-U", "--preserve-credentials", "unshare", "-n"}, stay));
    if (!client_->WaitForLine("ready")) GTEST_SKIP() << "no network namespace: " << client_->output();
    const RunResult joined = Run(*server_, {"ip", "link", "add", "server", "type", "veth", "peer", "name",
                                            "client", "netns", Id(*client_)});
    if (joined.code != 0) GTEST_SKIP() << "no virtual interfaces: " << joined.output;
    SetUpEnd(*server_, "server", "10.77.0.1/24");
    SetUpEnd(*client_, "client", "10.77.0.2/24");
    frame_ = std::make_unique<SmallFrame>(50, 200);
  }

  static std::string Id(const Process& process) { return absl::StrCat(process.pid()); }
  // Returns `command`, run in the namespace of that process.
  static Command In(const Process& process, const Command& command) {
    return Joined({"nsenter", "-t", Id(process), "-U", "-n", "--preserve-credentials"}, command);
  }
  static RunResult Run(const Process& process, const Command& command) {
    Process running(In(process, command));
    const int code = running.Wait();
    return {code, running.output()};
  }
  static void Expect(const Process& process, const Command& command) {
    EXPECT_THAT(Run(process, command), ExitsWith(0));
  }
  static void SetUpEnd(const Process& process, const std::string& name, const std::string& address) {
    Expect(process, {"ip", "address", "add", address, "dev", name});
    Expect(process, {"ip", "link", "set", "lo", "up"});
    Expect(process, {"ip", "link", "set", name, "up"});
  }
  // The client's end stays up, and what it sends is lost.
  void Cut() { Expect(*server_, {"ip", "link", "set", "server", "down"}); }
  void Mend() { Expect(*server_, {"ip", "link", "set", "server", "up"}); }
  // Returns the number of packets that reached the server.
  int64_t Packets() const {
    std::ifstream devices(absl::StrCat("/proc/", server_->pid(), "/net/dev"));
    for (std::string line; std::getline(devices, line);) {
      const absl::string_view text = absl::StripLeadingAsciiWhitespace(line);
      int64_t bytes = 0, packets = 0;
      if (std::sscanf(text.data(), "server: %ld %ld", &bytes, &packets) == 2) return packets;
    }
    return -1;
  }
  // Returns whether the server's side has a connection. The fourth column is its state.
  bool IsConnected() const {
    std::ifstream connections(absl::StrCat("/proc/", server_->pid(), "/net/tcp"));
    for (std::string line; std::getline(connections, line);) {
      const std::vector<std::string> columns = absl::StrSplit(line, ' ', absl::SkipEmpty());
      if (columns.size() > 3 && columns[3] == "01") return true;
    }
    return false;
  }

  // Starts a server that pings every second and waits a second for an answer.
  void StartSpexd(const Command& flags) {
    const absl::string_view usual =
        "--listen 10.77.0.1:0 --insecure-any-address --http none --device cpu --threads 1 "
        "--max-running-jobs 1 --keepalive-seconds 1 --keepalive-timeout-seconds 1";
    const Command files = {BinFolder() + "/spexd", "--port-file", folder_ / "ports.json", "--allow-root",
                           frame_->folder()};
    spexd_ =
        std::make_unique<Process>(In(*server_, Joined(Joined(files, absl::StrSplit(usual, ' ')), flags)));
    ASSERT_TRUE(spexd_->WaitForLine("\"started\"")) << spexd_->output();
    address_ = nlohmann::json::parse(ReadBytes(folder_ / "ports.json"))["grpc"].get<std::string>();
  }
  Command SpexCommand(const Command& arguments) const {
    return In(*client_, Joined(Joined({BinFolder() + "/spex"}, arguments), {"--server", address_}));
  }
  RunResult RunSpex(const Command& arguments) const {
    Process spex(SpexCommand(arguments));
    const int code = spex.Wait();
    return {code, spex.output()};
  }
  Command Files() const { return {"-i", frame_->image(), "-p", frame_->psf()}; }
  // Submits a job of this many bundles of two fibres, and watches it through a cut after its first bundle.
  // Returns the output of the watch.
  std::string WatchCutInTheMiddle(int bundles) {
    const RunResult submitted = RunSpex(
        Joined({"submit", "-q"},
               Joined(Files(), {"-n", absl::StrCat(2 * bundles), "--bundlesize", "2", "-w", kSomeTenths})));
    EXPECT_EQ(submitted.code, 0) << submitted.output;
    const std::string job(absl::StripSuffix(submitted.output, "\n"));
    Process watch(SpexCommand({"watch", job, "--progress", "lines", "-o", output_ / "frame.fits"}));
    EXPECT_TRUE(watch.WaitForLine("Done ")) << watch.output();
    Cut();
    EXPECT_TRUE(Eventually([this] { return !IsConnected(); }));  // its pings were lost
    // The job ends while nobody watches.
    EXPECT_TRUE(spexd_->WaitForLine(absl::StrCat("\"detached_job_ended\",\"job\":\"", job)));
    Mend();
    EXPECT_EQ(watch.Wait(), 0) << watch.output();
    return watch.output();
  }
  void Stop() {
    spexd_->Signal(SIGTERM);
    EXPECT_EQ(spexd_->Wait(), 0);
  }

  TempFolder folder_, output_;
  std::unique_ptr<Process> server_, client_;  // processes that hold the namespaces
  std::unique_ptr<SmallFrame> frame_;
  std::string address_;
  std::unique_ptr<Process> spexd_;
};

TEST_F(NetworkCutTest, InTheMiddleOfAJobCancelsItAndGivesItsSlotToTheNext) {
  StartSpexd({});
  // The bins are so fine that a bundle takes minutes.
  Process client(SpexCommand(Joined(Files(), {"-w", "6600,6680,0.04", "-o", output_ / "frame.fits"})));
  ASSERT_TRUE(spexd_->WaitForLine("\"estimate\"")) << client.output();
  // The server pings as long as the job is silent, not only twice.
  const int64_t before = Packets();
  ASSERT_TRUE(Eventually([&] { return Packets() >= before + 10; }));
  Cut();
  std::string line;
  ASSERT_TRUE(spexd_->WaitForLine("\"job_ended\"", &line));
  EXPECT_THAT(line, HasSubstr("\"cancelled\""));
  Mend();
  EXPECT_THAT(RunSpex(Joined(Files(), {"-n", "3", "-o", output_ / "next.fits"})), ExitsWith(0));
  Stop();
}

TEST_F(NetworkCutTest, InTheMiddleOfAWatchLetsTheJobGoOnAndTheWatchResumeWithEachBundleOnce) {
  constexpr int kBundles = 6, kMaxAttempts = 10;
  StartSpexd({"--jobs-dir", folder_ / "jobs"});
  std::string output;
  for (int attempt = 0; attempt < kMaxAttempts; ++attempt) {
    output = WatchCutInTheMiddle(kBundles);
    if (HasFailure() || absl::StrContains(output, "trying again")) break;  // else the cut came too late
  }
  EXPECT_THAT(output, HasSubstr("trying again"));
  for (int bundle = 0; bundle < kBundles; ++bundle) {
    const std::string line = absl::StrCat(" spectra ", 2 * bundle, ":", 2 * bundle + 2, "\n");
    const size_t at = output.find(line);
    EXPECT_NE(at, std::string::npos) << line;
    EXPECT_EQ(output.find(line, at + 1), std::string::npos) << line << " came twice";
  }
  Stop();
}

}  // namespace
}  // namespace spexd::testing
