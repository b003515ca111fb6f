// --device and --devices of both programs, with and without a module.
#include <gmock/gmock.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include "spexd/v1/extraction.grpc.pb.h"
#include "tests/client/small_frame.h"
#include "tests/loader/modules.h"

namespace spexd::testing {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

const std::string kNowhere = "/nowhere/libspexd_cuda.so";
const std::string kWhy = "$SPEXD_CUDA_MODULE names /nowhere/libspexd_cuda.so, which is not there";

ProcessOptions With(const std::string& module) {
  ProcessOptions options;
  options.environment = {"SPEXD_CUDA_MODULE=" + module};
  return options;
}

size_t Count(const std::string& text, const std::string& word) {
  size_t count = 0;
  for (size_t at = text.find(word); at != std::string::npos; at = text.find(word, at + 1)) ++count;
  return count;
}

class SpexDevice : public ::testing::Test {
 protected:
  static void SetUpTestSuite() { input_ = new SmallFrame(10, 80); }
  static void TearDownTestSuite() { delete input_; }
  RunResult Run(std::vector<std::string> more, const std::string& module) {
    more.insert(more.begin(),
                {"-i", input_->image(), "-p", input_->psf(), "-o", folder_ / "frame.fits", "-n", "5"});
    return Spex(more, With(module));
  }

  static SmallFrame* input_;
  TempFolder folder_;
};
SmallFrame* SpexDevice::input_ = nullptr;

TEST_F(SpexDevice, FailsLoudlyWhereCudaWasAskedForAndCannotBeHad) {
  const RunResult run = Run({"--device", "cuda"}, kNowhere);
  EXPECT_EQ(run.code, 2);
  EXPECT_EQ(run.output, "spex: --device cuda: " + kWhy + "\n");
  EXPECT_THAT(folder_.Entries(), ElementsAre());
}

TEST_F(SpexDevice, FallsBackUnderAutoAndSaysSoOnce) {
  const RunResult run = Run({}, kNowhere);
  EXPECT_EQ(run.code, 0) << run.output;
  EXPECT_EQ(Count(run.output, "spex: running on the CPU: " + kWhy + "\n"), 1u);
  EXPECT_EQ(Count(run.output, "CPU"), 1u);
  EXPECT_THAT(run.output, HasSubstr("; engine cpu ("));
  const RunResult quiet = Run({"--quiet"}, kNowhere);
  EXPECT_EQ(quiet.code, 0);
  EXPECT_EQ(quiet.output, "");
}

TEST_F(SpexDevice, SaysNothingOfCudaWhereTheCpuWasAskedFor) {
  for (const std::vector<std::string>& flags : {std::vector<std::string>{"--device", "cpu"}, {"--no-gpu"}}) {
    const RunResult run = Run(flags, kNowhere);
    EXPECT_EQ(run.code, 0) << run.output;
    EXPECT_THAT(run.output, AllOf(HasSubstr("; engine cpu ("), Not(HasSubstr("running on the CPU"))));
  }
}

TEST_F(SpexDevice, RunsOnTheDevicesThatWereAskedFor) {
  for (const char* device : {"cuda", "auto"}) {
    const RunResult run = Run({"--device", device, "--devices", "2,0"}, FakeModule("fake_cuda"));
    EXPECT_EQ(run.code, 0) << run.output;
    EXPECT_THAT(run.output, HasSubstr("; engine cuda (2 x Fake GPU)"));
    EXPECT_THAT(run.output, Not(HasSubstr("CPU")));
  }
}

TEST_F(SpexDevice, RefusesDevicesThatMakeNoSense) {
  const auto refused = [this](const std::vector<std::string>& flags, const std::string& words) {
    const RunResult run = Run(flags, FakeModule("fake_cuda"));
    EXPECT_EQ(run.code, 2) << run.output;
    EXPECT_THAT(run.output, AllOf(HasSubstr("--devices"), HasSubstr(words)));
    EXPECT_THAT(folder_.Entries(), ElementsAre());
  };
  refused({"--device", "cpu", "--devices", "0"}, "--device cpu");
  refused({"--no-gpu", "--devices", "0"}, "--device cpu");
  refused({"--devices", "1,1"}, "1 is named twice");
  refused({"--devices", "first"}, "\"first\" is no device");
  refused({"--devices", "7"}, "7 is not there");
}

class SpexdDevice : public ::testing::Test {
 protected:
  static std::vector<std::string> Command(const std::vector<std::string>& more) {
    std::vector<std::string> command = {BinFolder() + "/spexd", "--listen", "127.0.0.1:0", "--http", "none"};
    command.insert(command.end(), more.begin(), more.end());
    return command;
  }
  static v1::Capabilities Status(const TestServer& server) {
    const auto stub =
        v1::Extraction::NewStub(grpc::CreateChannel(server.address(), grpc::InsecureChannelCredentials()));
    grpc::ClientContext context;
    v1::Capabilities status;
    EXPECT_TRUE(stub->GetCapabilities(&context, {}, &status).ok());
    return status;
  }
};

TEST_F(SpexdDevice, DoesNotStartWhereCudaWasAskedForAndCannotBeHad) {
  Process spexd(Command({"--device", "cuda"}), With(kNowhere));
  EXPECT_EQ(spexd.Wait(), 1);
  EXPECT_EQ(spexd.output(), "spexd: --device cuda: " + kWhy + "\n");
  Process missing(Command({"--device", "cuda", "--devices", "0,7"}), With(FakeModule("fake_cuda")));
  EXPECT_EQ(missing.Wait(), 2);
  EXPECT_THAT(missing.output(), HasSubstr("7 is not there"));
}

TEST_F(SpexdDevice, FallsBackUnderAutoAndSaysSoInLogAndStatus) {
  TestServer server({"--threads", "1"}, With(kNowhere));
  const v1::Capabilities status = Status(server);
  ASSERT_EQ(status.engines_size(), 2);
  EXPECT_EQ(status.engines(0).kind(), "cpu");
  EXPECT_EQ(status.engines(1).detail(), kWhy);
  EXPECT_EQ(status.limits().max_running_jobs(), 2u);
  server.process().Signal(SIGTERM);
  EXPECT_EQ(server.process().Wait(), 0);
  const std::string log = ReadBytes(server.log());
  EXPECT_EQ(Count(log, "\"level\":\"warning\",\"event\":\"engine_fallback\""), 1u) << log;
  EXPECT_THAT(log, HasSubstr("\"cuda\":\"" + kWhy + "\""));
}

TEST_F(SpexdDevice, SaysWhenTheCpuWasAskedFor) {
  TestServer server({"--threads", "1", "--device", "cpu"}, With(kNowhere));
  EXPECT_EQ(Status(server).engines(1).detail(), "not asked for: --device cpu");
  server.process().Signal(SIGTERM);
  EXPECT_EQ(server.process().Wait(), 0);
  EXPECT_THAT(ReadBytes(server.log()), Not(HasSubstr("engine_fallback")));
}

TEST_F(SpexdDevice, RunsOnItsDevicesAndSpexStatusShowsThem) {
  TestServer server({"--devices", "1,3", "--device-memory-bytes", "2GiB", "--jobs-per-device", "3"},
                    With(FakeModule("fake_cuda")));
  const v1::Capabilities status = Status(server);
  ASSERT_EQ(status.engines_size(), 1);
  EXPECT_EQ(status.engines(0).kind(), "cuda");
  EXPECT_EQ(status.engines(0).threads(), 6u);
  EXPECT_EQ(status.limits().max_running_jobs(), 12u);
  const RunResult shown = Spex({"status", "--server", server.address()});
  EXPECT_EQ(shown.code, 0) << shown.output;
  EXPECT_THAT(shown.output,
              AllOf(HasSubstr("engine cuda  ready: 2 x Fake GPU\n"),
                    HasSubstr("  device 1  Fake GPU, 2.0 GiB: 0.0 MiB for PSFs, 0.0 MiB for 0 jobs\n"),
                    HasSubstr("  device 3  Fake GPU")));
  const RunResult json = Spex({"status", "--server", server.address(), "--json"});
  EXPECT_THAT(json.output, HasSubstr("\"memory_bytes\": \"2147483648\""));
}

TEST_F(SpexdDevice, EndsWithAFailureOnceItsEngineFailed) {
  Process spexd(Command({}), With(FakeModule("fake_failed")));
  EXPECT_TRUE(spexd.WaitForLine("\"device_failed\""));
  EXPECT_TRUE(spexd.WaitForLine("\"engine_failed\""));
  EXPECT_TRUE(spexd.WaitForLine("\"stopped\""));
  EXPECT_EQ(spexd.Wait(), 1);
  EXPECT_THAT(spexd.output(), HasSubstr("an illegal address in solve"));
}

}  // namespace
}  // namespace spexd::testing
