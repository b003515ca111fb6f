// Several servers as clients of a cluster use them: restarts or replacements, one server at a time, while
// jobs run. The servers are processes of spexd, each on its own loopback address.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <atomic>
#include <chrono>
#include <filesystem>
#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "client/connection/grpc_connection.h"
#include "client/connection/server_directory.h"
#include "client/extract_client.h"
#include "core/base/threads/mutex.h"
#include "tests/client/support/small_frame.h"
#include "tests/service/support/scrape.h"
#include "tests/support/eventually.h"
#include "tests/support/process.h"

namespace spexd::testing {
namespace {

constexpr int kThreads = 4;

// A server that keeps its address when it is restarted.
class Replica {
 public:
  Replica(int number, const SmallFrame& frame)
      : frame_(frame), address_(absl::StrCat("127.77.0.", number, ":0")) {}

  void Start() {
    spexd_ = std::make_unique<Process>(
        std::vector<std::string>{BinFolder() + "/spexd", "--listen", address_, "--http", "127.0.0.1:0",
                                 "--port-file", folder_ / "ports.json", "--allow-root", frame_.folder(),
                                 "--device", "cpu", "--threads", "1", "--log-level", "warning"});
    // Nothing is logged at this level; the file exists once the port answers.
    ASSERT_TRUE(Eventually([&] { return !ReadPorts().is_null(); }));
    address_ = ReadPorts()["grpc"].get<std::string>();
    http_ = absl::StrCat("127.0.0.1:", ReadPorts()["http_port"].get<int>());
  }
  // Drains the server; returns its exit code.
  int Stop() {
    spexd_->Signal(SIGTERM);
    const int code = spexd_->Wait();
    std::filesystem::remove(folder_ / "ports.json");
    return code;
  }
  double Jobs() const { return ScrapedMetric(http_, "spexd_jobs_total{outcome=\"ok\"}"); }
  const std::string& address() const { return address_; }

 private:
  nlohmann::json ReadPorts() const {
    if (!std::filesystem::exists(folder_ / "ports.json")) return nullptr;
    return nlohmann::json::parse(ReadBytes(folder_ / "ports.json"));
  }

  const SmallFrame& frame_;
  TempFolder folder_;
  std::string address_, http_;
  std::unique_ptr<Process> spexd_;
};

// Starts the server after a client has failed to reach it twice.
class StartsServer : public JobObserver {
 public:
  explicit StartsServer(Replica* server) : server_(server) {}
  void OnRetry(int attempt, const absl::Status& reason, std::chrono::milliseconds delay) override {
    if (attempt == 2) server_->Start();
  }

 private:
  Replica* server_;
};

class RolloutTest : public ::testing::Test {
 protected:
  void StartReplicas(int count) {
    for (int k = 0; k < count; ++k) StartAnother();
    auto directory = client::OpenDirectory({.address = absl::StrJoin(Addresses(), ",")});
    ASSERT_TRUE(directory.ok()) << directory.status();
    directory_ = *std::move(directory);
  }
  // Starts a server at an address that none had before.
  void StartAnother() {
    replicas_.push_back(std::make_unique<Replica>(++started_, frame_));
    replicas_.back()->Start();
  }
  std::vector<std::string> Addresses() const {
    std::vector<std::string> addresses;
    for (const auto& replica : replicas_) addresses.push_back(replica->address());
    return addresses;
  }
  ~RolloutTest() override {
    for (const auto& replica : replicas_) EXPECT_EQ(replica->Stop(), 0);
  }

  // Runs jobs in threads as long as `more`, which is called before each job, returns true.
  void RunJobs(const std::function<bool()>& more) {
    client::RemoteExtractor extractor(directory_->source());
    std::vector<std::jthread> threads;
    for (int k = 0; k < kThreads; ++k) {
      threads.emplace_back([&] {
        while (more()) {
          const auto outcome = extractor.Run(SmallJob(), nullptr, {});
          EXPECT_TRUE(outcome.ok()) << outcome.status();
          ++(outcome.ok() ? done_ : lost_);
        }
      });
    }
  }

  const SmallFrame frame_{2, 60};
  std::vector<std::unique_ptr<Replica>> replicas_;
  int started_ = 0;
  std::unique_ptr<client::ServerDirectory> directory_;
  std::atomic<int> done_ = 0, lost_ = 0;

  client::Job SmallJob() const {
    client::Job job;
    job.image = frame_.image();
    job.psf = frame_.psf();
    return job;
  }
};

TEST_F(RolloutTest, AJobIsTakenByAServerThatStartsAfterTheFirstAttempts) {
  StartReplicas(1);
  EXPECT_EQ(replicas_[0]->Stop(), 0);
  StartsServer observer(replicas_[0].get());
  client::RemoteOptions options;
  options.retry.unavailable_attempts = 7;  // for 6 to 20 s, because the server may start slowly
  client::RemoteExtractor extractor(directory_->source(), options);
  const auto outcome = extractor.Run(SmallJob(), &observer, {});
  EXPECT_TRUE(outcome.ok()) << outcome.status();
}

TEST_F(RolloutTest, NoJobIsLostWhileServersAreStartedAnewOneAfterTheOther) {
  StartReplicas(3);
  std::jthread jobs([&](const std::stop_token& stop) { RunJobs([&] { return !stop.stop_requested(); }); });
  for (const auto& replica : replicas_) {
    ASSERT_TRUE(Eventually([&] { return replica->Jobs() >= 10; }));
    EXPECT_EQ(replica->Stop(), 0);
    replica->Start();
    ASSERT_TRUE(Eventually([&] { return replica->Jobs() >= 10; })) << "no jobs after the restart";
  }
  jobs.request_stop();
  jobs.join();
  EXPECT_EQ(lost_, 0);
  EXPECT_GE(done_, 60);
}

// As a Deployment does it: the new server is ready and has the name before the old one loses the name and
// drains.
TEST_F(RolloutTest, NoJobIsLostWhileServersAreReplacedByOthersAtOtherAddresses) {
  Mutex mutex;
  std::vector<std::string> named;
  const auto name_servers = [&] {
    const MutexLock lock(&mutex);
    named = Addresses();
  };
  for (int k = 0; k < 3; ++k) StartAnother();
  name_servers();
  auto directory = client::OpenDirectory({.address = "dns:///spexd.example:50051"},
                                         [&](const std::string&, const std::string&) {
                                           const MutexLock lock(&mutex);
                                           return named;
                                         });
  ASSERT_TRUE(directory.ok()) << directory.status();
  directory_ = *std::move(directory);
  std::jthread jobs([&](const std::stop_token& stop) { RunJobs([&] { return !stop.stop_requested(); }); });
  for (int k = 0; k < 3; ++k) {
    StartAnother();
    const std::unique_ptr<Replica> old = std::move(replicas_.front());
    replicas_.erase(replicas_.begin());
    name_servers();
    EXPECT_EQ(old->Stop(), 0);
    ASSERT_TRUE(Eventually([&] { return replicas_.back()->Jobs() >= 10; })) << "no jobs came to it";
  }
  jobs.request_stop();
  jobs.join();
  EXPECT_EQ(lost_, 0);
  EXPECT_GE(done_, 30);
}

}  // namespace
}  // namespace spexd::testing
