// The program with accumulators, killed without warning while jobs add to them: each job's frame counts once.
#include <gtest/gtest.h>
#include <signal.h>

#include <algorithm>
#include <chrono>
#include <iostream>
#include <random>
#include <thread>

#include "client/connection/grpc_connection.h"
#include "client/detached_client.h"
#include "nlohmann/json.hpp"
#include "tests/service/support/inputs.h"
#include "tests/service/support/product_inputs.h"
#include "tests/service/support/server_command.h"
#include "tests/support/process.h"

namespace spexd::testing {
namespace {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr int kKills = 10;
#else
constexpr int kKills = 200;
#endif
constexpr int kMostWaiting = 3;  // jobs that have not ended at a kill

class AccumulatorKillTest : public ::testing::Test {
 protected:
  AccumulatorKillTest() {
    WritePsfFile(folder_ / "psf.fits");
    WritePreprocWithSky(folder_ / "preproc.fits");
  }
  void Start() {
    spexd_ = std::make_unique<Process>(DetachedServerCommand(folder_));
    ASSERT_TRUE(spexd_->WaitForLine("\"started\"")) << spexd_->output();
    const auto ports = nlohmann::json::parse(ReadBytes(folder_ / "ports.json"));
    connection_ = client::MakeGrpcConnection(ports["grpc"].get<std::string>());
  }
  void Kill() {
    spexd_->Signal(SIGKILL);
    EXPECT_EQ(spexd_->Wait(), 128 + SIGKILL) << spexd_->output();
  }
  static client::Connection::Deadline Soon() { return client::Clock::now() + std::chrono::seconds(60); }
  // Each has spectra of its own.
  client::Job JobOf(int number) const {
    client::Job job;
    job.image = folder_ / "preproc.fits";
    job.psf = folder_ / "psf.fits";
    job.spec.regularize = 1e-4 * (number + 1);
    job.products.accumulators = {"residuals", "targets"};
    return job;
  }
  std::vector<v1::JobRecord> Jobs() {
    const auto jobs = client::ListAllJobs(connection_.get(), {}, Soon(), {});
    EXPECT_TRUE(jobs.ok()) << jobs.status();
    return jobs.value_or(std::vector<v1::JobRecord>());
  }
  int Waiting() {
    const std::vector<v1::JobRecord> jobs = Jobs();
    return static_cast<int>(
        std::count_if(jobs.begin(), jobs.end(), [](const v1::JobRecord& job) { return job.ended() == 0; }));
  }

  TempFolder folder_;
  std::unique_ptr<Process> spexd_;
  std::unique_ptr<client::Connection> connection_;
};

TEST_F(AccumulatorKillTest, EachFrameCountsOnceHoweverOftenTheServerIsKilled) {
  Start();
  for (const auto& [name, kind] :
       {std::pair("residuals", v1::ACCUMULATOR_KIND_PCA), std::pair("targets", v1::ACCUMULATOR_KIND_COADD)}) {
    v1::CreateAccumulatorRequest request;
    request.set_name(name);
    request.set_kind(kind);
    ASSERT_TRUE(connection_->CreateAccumulator(request, Soon()).ok());
  }
  const unsigned seed = std::random_device()();
  std::cout << "seed " << seed << "\n";
  std::mt19937 random(seed);
  int jobs = 0;
  for (int kill = 0; kill < kKills; ++kill) {
    for (int waiting = Waiting(); waiting < kMostWaiting; ++waiting, ++jobs) {
      const auto submitted = client::DetachedClient({connection_.get()})
                                 .Submit(JobOf(jobs), {std::to_string(jobs)}, nullptr, {});
      ASSERT_TRUE(submitted.ok()) << submitted.status();
    }
    // When the server is killed is left to chance.
    std::this_thread::sleep_for(std::chrono::milliseconds(random() % 15));
    Kill();
    Start();
    ASSERT_FALSE(HasFailure()) << "kill " << kill;
  }
  std::cout << kKills << " kills, " << jobs << " jobs\n";
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::minutes(1);
  while (Waiting() > 0 && std::chrono::steady_clock::now() < deadline) std::this_thread::yield();
  for (const v1::JobRecord& job : Jobs()) EXPECT_EQ(job.state(), v1::DETACHED_STATE_DONE) << job.message();
  const auto list = connection_->ListAccumulators({}, Soon());
  ASSERT_TRUE(list.ok()) << list.status();
  ASSERT_EQ(list->accumulators_size(), 2);
  for (const v1::AccumulatorRecord& record : list->accumulators()) {
    EXPECT_EQ(record.frames(), static_cast<uint64_t>(jobs)) << record.name();
    v1::ReadAccumulatorRequest request;
    request.set_name(record.name());
    EXPECT_TRUE(connection_->ReadAccumulator(request, Soon()).ok()) << record.name();
  }
}

}  // namespace
}  // namespace spexd::testing
