// The contract as another implementation sees it: grpcio/client.py talks to a server in this process. Covers
// every status code, health and reflection.
#include <signal.h>

#include <regex>

#include "server/server.h"
#include "tests/service/support/harness.h"
#include "tests/support/build_paths.h"
#include "tests/support/matchers.h"
#include "tests/support/process.h"
#include "tests/support/run_command.h"

namespace spexd::testing {
namespace {

constexpr char kPython[] = "/usr/bin/python3";

class GrpcioTest : public ServiceTest {
 protected:
  void SetUp() override {
    if (RunCommand({kPython, "-c", "import grpc"}).exit_code != 0)
      GTEST_SKIP() << "python3-grpcio is not installed";
  }
  Process Client(const std::string& scenario) {
    return Process({kPython, SourceFolder() + "/tests/service/grpcio/client.py", scenario,
                    server_->grpc_address(), folder_.path()},
                   {.environment = {"PYTHONPATH=" + BuildFolder() + "/tests/service/python"}});
  }
  static void ExpectGood(Process* client) { EXPECT_EQ(client->Wait(), 0) << client->output(); }
};

TEST(GrpcioClientTest, ExpectsEveryDocumentedCode) {
  const std::string folder = SourceFolder();
  const std::string client = ReadBytes(folder + "/tests/service/grpcio/client.py");
  const std::string page = ReadBytes(folder + "/docs/spexd.md");
  const size_t table = page.find("\n| code | cause | ");
  ASSERT_NE(table, std::string::npos);
  const std::string rows = page.substr(table, page.find("\n\n", table) - table);
  const std::regex code("\n\\| ([A-Z_]+) ");
  int codes = 0;
  for (std::sregex_iterator at(rows.begin(), rows.end(), code), end; at != end; ++at, ++codes)
    EXPECT_THAT(client, HasSubstr("ode." + (*at)[1].str()));  // code.NAME, StatusCode.NAME
  EXPECT_GE(codes, 14);
}

TEST_F(GrpcioTest, EndsJobsWithTheCodesOfTheContract) {
  options_.max_queued_bytes = 4 << 20;
  Start();
  Process client = Client("jobs");
  ExpectGood(&client);
}

TEST_F(GrpcioTest, EndsCallsOfDetachedJobsWithTheCodesOfTheContract) {
  options_.jobs_dir = folder_ / "jobs";
  Start();
  Process client = Client("detached");
  ExpectGood(&client);
}

TEST_F(GrpcioTest, EndsTheWatchOfACancelledJobAsCancelled) {
  options_.jobs_dir = folder_ / "jobs";
  options_.max_running_jobs = 1;
  Start();
  const auto held = HoldJobAtGate();  // the client's job waits behind this one
  ASSERT_NE(held, nullptr);
  Process client = Client("cancelled");
  ExpectGood(&client);
  EXPECT_TRUE(LetGo(held.get()).status.ok());
}

TEST_F(GrpcioTest, NamesLimitsAndDelays) {
  options_.max_running_jobs = 1;
  options_.max_queued_jobs = 0;
  options_.header_seconds = 5;
  Start();
  Process client = Client("limits");
  ASSERT_TRUE(client.WaitForLine("cancelled")) << client.output();
  ASSERT_TRUE(Eventually([&] { return Metric("spexd_jobs_total{outcome=\"cancelled\"}") == 1; }));
  client.Signal(SIGUSR1);
  ExpectGood(&client);
}

TEST_F(GrpcioTest, TellsAFailureFromADeviceThatFailed) {
  Start();
  engine_->Set([](auto& b) { b.extract_error = absl::InternalError("broken"); });
  Process client = Client("internal");
  ASSERT_TRUE(client.WaitForLine("failed")) << client.output();
  engine_->Set([](auto& b) { b.extract_error = absl::UnavailableError("device 0 failed"); });
  client.Signal(SIGUSR1);
  ExpectGood(&client);
}

TEST_F(GrpcioTest, KnowsItsCallers) {
  // SHA-256 of "viewer-token".
  WriteText(folder_ / "identities",
            "viewer read token sha256:d036bd6d01a1cae081d39a2f8dab751dc042de814fd60df31fcb553170950f29\n");
  options_.identities = folder_ / "identities";
  Start();
  Process client = Client("access");
  ExpectGood(&client);
}

TEST_F(GrpcioTest, TellsByHealthThatItDrains) {
  Start();
  const auto job = HoldJobAtGate();  // keeps the drain from ending
  ASSERT_NE(job, nullptr);
  Process client = Client("health");
  const bool serving = client.WaitForLine("serving");
  EXPECT_TRUE(serving) << client.output();
  std::thread drain([&] { EXPECT_TRUE(server_->Drain()); });
  EXPECT_TRUE(client.WaitForLine("drains")) << client.output();
  EXPECT_TRUE(LetGo(job.get()).status.ok());
  drain.join();
  ExpectGood(&client);
}

TEST_F(GrpcioTest, DescribesItself) {
  Start();
  Process client = Client("reflection");
  ExpectGood(&client);
}

}  // namespace
}  // namespace spexd::testing
