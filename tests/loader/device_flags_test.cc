// The flags --device and --devices of both programs, with and without a module, and with devices that die.
#include <grpcpp/grpcpp.h>
#include <signal.h>

#include <filesystem>
#include <memory>

#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "client/cli/flags/where_flags.h"
#include "spexd/v1/extraction.grpc.pb.h"
#include "tests/client/support/small_frame.h"
#include "tests/loader/modules.h"
#include "tests/service/support/scrape.h"
#include "tests/support/matchers.h"

namespace spexd::testing {
namespace {

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

  static inline SmallFrame* input_ = nullptr;
  TempFolder folder_;
};

TEST_F(SpexDevice, FailsLoudlyWhereCudaWasAskedForAndCannotBeHad) {
  const RunResult run = Run({"--device", "cuda"}, kNowhere);
  EXPECT_EQ(run.code, 2);
  EXPECT_EQ(run.output, "spex: --device cuda: " + kWhy + "\n");
  EXPECT_THAT(folder_.Entries(), ElementsAre());
}

TEST_F(SpexDevice, FallsBackUnderAutoAndSaysSoInOneLineWhereThereIsAGpuOrTheUserAsks) {
  const auto notes = [this](const std::vector<std::string>& flags) {
    const RunResult run = Run(flags, kNowhere);
    EXPECT_THAT(run, ExitsWith(0, HasSubstr("; engine cpu (")));
    const size_t count = Count(run.output, "CPU");
    EXPECT_EQ(Count(run.output, "spex: running on the CPU: " + kWhy + "\n"), count);
    return count;
  };
  EXPECT_EQ(notes({}), cli::HasGpu() ? 1u : 0u);
  EXPECT_EQ(notes({"-v"}), 1u);
  EXPECT_EQ(notes({"--loglevel", "debug"}), 1u);
  EXPECT_EQ(Run({"--quiet", "-v"}, kNowhere).output, "");
  const TempFolder many;
  const RunResult batch =
      Spex({"-i", input_->image(), "-p", input_->psf(), "--output-dir", many.path(), "-n", "5", "--verbose"},
           With(kNowhere));
  EXPECT_EQ(batch.code, 0) << batch.output;
  EXPECT_EQ(Count(batch.output, "spex: running on the CPU: " + kWhy + "\n"), 1u);
}

TEST(NoteOnCpu, LeavesOutThePlacesWhereTheModuleWasLookedFor) {
  const std::string why = "the CUDA engine is not installed: neither /a nor /b is there; install spexd-cuda";
  EXPECT_EQ(cli::NoteOnCpu("running on the CPU", why, true),
            "spex: running on the CPU: the CUDA engine is not installed");
  EXPECT_EQ(cli::NoteOnCpu("running on the CPU", why, false), "");
  EXPECT_EQ(cli::NoteOnCpu("running on the CPU", "", true), "");
}

TEST_F(SpexDevice, SaysNothingOfCudaWhereTheCpuWasAskedFor) {
  for (const std::vector<std::string>& flags : {std::vector<std::string>{"--device", "cpu"}, {"--no-gpu"}}) {
    EXPECT_THAT(Run(flags, kNowhere),
                ExitsWith(0, AllOf(HasSubstr("; engine cpu ("), Not(HasSubstr("running on the CPU")))));
  }
}

TEST_F(SpexDevice, RunsOnTheDevicesThatWereAskedFor) {
  for (const char* device : {"cuda", "auto"}) {
    EXPECT_THAT(Run({"--device", device, "--devices", "2,0"}, FakeModule("fake_cuda")),
                ExitsWith(0, AllOf(HasSubstr("; engine cuda (2 x Fake GPU)"), Not(HasSubstr("CPU")))));
  }
}

// spex doctor uses the driver's libraries in this folder.
TEST_F(SpexDevice, HasADoctorWhoTellsOfDriverDevicesAndEngine) {
  for (const char* library : {"libcuda.so.1", "libnvidia-ml.so.1"})
    std::filesystem::create_symlink(FakeModule("fake_driver"), folder_ / library);
  const auto told = [this](const std::string& module) {
    ProcessOptions options = With(module);
    options.environment.push_back("LD_LIBRARY_PATH=" + folder_.path());
    return Spex({"doctor"}, options);
  };
  const RunResult ready = told(FakeModule("fake_cuda"));
  EXPECT_THAT(ready, ExitsWith(0, HasSubstr("  ok       driver       NVIDIA 580.1, CUDA up to 13.1\n")));
  EXPECT_THAT(ready.output, HasSubstr("  ok       gpu 0        Fake H9, 0.0 GiB, compute capability 9.3\n"));
  EXPECT_THAT(ready.output, HasSubstr("a part of a device (MIG)\n"));
  EXPECT_THAT(ready.output, HasSubstr("  ok       cuda engine  loaded, ready on the devices 0, 1, 2, 3\n"));
  const RunResult missing = told(kNowhere);
  EXPECT_THAT(missing, ExitsWith(0, HasSubstr("  warning  cuda engine  " + kWhy + "\n")));
  EXPECT_THAT(told(FakeModule("fake_other_version")).output, HasSubstr("install both from one build"));
}

TEST_F(SpexDevice, RefusesDevicesThatMakeNoSense) {
  const auto refused = [this](const std::vector<std::string>& flags, const std::string& words) {
    EXPECT_THAT(Run(flags, FakeModule("fake_cuda")),
                ExitsWith(2, AllOf(HasSubstr("--devices"), HasSubstr(words))));
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
    return Joined({BinFolder() + "/spexd", "--listen", "127.0.0.1:0", "--http", "none"}, more);
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
  EXPECT_THAT(
      Spex({"status", "--server", server.address()}),
      ExitsWith(0, AllOf(HasSubstr("engine cuda  ready: 2 x Fake GPU\n"),
                         HasSubstr("  device 1  Fake GPU, 2.0 GiB: 0.0 MiB for PSFs, 0.0 MiB for 0 jobs\n"),
                         HasSubstr("  device 3  Fake GPU"))));
  const RunResult json = Spex({"status", "--server", server.address(), "--json"});
  EXPECT_THAT(json.output, HasSubstr("\"memory_bytes\": 2147483648"));
}

TEST_F(SpexdDevice, EndsWithAFailureOnceItsEngineFailed) {
  Process spexd(Command({}), With(FakeModule("fake_failed")));
  EXPECT_TRUE(spexd.WaitForLine("\"device_failed\""));
  EXPECT_TRUE(spexd.WaitForLine("\"engine_failed\""));
  EXPECT_TRUE(spexd.WaitForLine("\"stopped\""));
  EXPECT_EQ(spexd.Wait(), 1);
  EXPECT_THAT(spexd.output(), HasSubstr("an illegal address in solve"));
}

// The device of a server's first job dies before or after the job's first bundle.
class DyingDevice : public ::testing::Test {
 protected:
  std::unique_ptr<TestServer> Start(const std::string& module, const std::string& devices) const {
    return std::make_unique<TestServer>(
        std::vector<std::string>{"--device", "cuda", "--devices", devices, "--allow-root", input_.folder(),
                                 "--jobs-dir", folder_ / "jobs"},
        With(FakeModule(module)));
  }
  std::vector<std::string> Files() const { return {"-i", input_.image(), "-p", input_.psf()}; }
  static RunResult SpexAt(const std::string& servers, std::vector<std::string> command,
                          const std::vector<std::string>& more) {
    command.insert(command.end(), more.begin(), more.end());
    command.insert(command.end(), {"--server", servers});
    return Spex(command);
  }
  std::string SubmitTo(const TestServer& server) const {
    const RunResult submitted = SpexAt(server.address(), {"submit", "-q"}, Files());
    EXPECT_EQ(submitted.code, 0) << submitted.output;
    return std::string(absl::StripSuffix(submitted.output, "\n"));
  }
  static double Healthy(const TestServer& server, int device) {
    return ScrapedMetric(server.http(),
                         absl::StrCat("spexd_device_healthy{device=\"", device, "\",name=\"Fake GPU\"}"));
  }
  static void ExpectFirstDeviceDead(TestServer* server) {
    EXPECT_EQ(HttpGet(server->http(), "/readyz").first, 200) << "the other device works";
    EXPECT_EQ(Healthy(*server, 0), 0);
    EXPECT_EQ(Healthy(*server, 1), 1);
    EXPECT_EQ(ScrapedMetric(server->http(), "spexd_engine_healthy"), 1);
    server->process().Signal(SIGTERM);
    EXPECT_EQ(server->process().Wait(), 0);
    EXPECT_EQ(Count(ReadBytes(server->log()), "\"device_failed\""), 1u);
  }
  // Expects that the server reported the death of its last device and ended, so as to be restarted.
  static void ExpectEnded(TestServer* server) {
    EXPECT_EQ(server->process().Wait(), 1);
    const std::string log = ReadBytes(server->log());
    EXPECT_EQ(Count(log, "\"device_failed\""), 1u) << log;
    EXPECT_EQ(Count(log, "\"engine_failed\""), 1u) << log;
    EXPECT_THAT(log, HasSubstr("an illegal address in solve"));
  }

  const SmallFrame input_ = SmallFrame(50, 80);  // two bundles
  TempFolder folder_, output_;
};

TEST_F(DyingDevice, LosesItsJobToTheOthersOfTheServer) {
  const auto server = Start("fake_dying", "0,1");
  EXPECT_THAT(SpexAt(server->address(), Files(), {"-o", output_ / "frame.fits"}),
              ExitsWith(0, HasSubstr("an illegal address in solve; trying again")));
  EXPECT_THAT(output_.Entries(), ElementsAre("frame.fits"));
  EXPECT_EQ(ScrapedMetric(server->http(), "spexd_jobs_total{outcome=\"unavailable\"}"), 1);
  EXPECT_EQ(ScrapedMetric(server->http(), "spexd_jobs_total{outcome=\"ok\"}"), 1);
  ExpectFirstDeviceDead(server.get());
}

TEST_F(DyingDevice, IsReportedOnceABundleCameAndLeavesNoFile) {
  const auto server = Start("fake_dying_late", "0,1");
  EXPECT_THAT(SpexAt(server->address(), Files(), {"-o", output_ / "frame.fits"}),
              ExitsWith(3, HasSubstr("an illegal address in solve")));
  EXPECT_THAT(output_.Entries(), ElementsAre());
  EXPECT_THAT(SpexAt(server->address(), Files(), {"-o", output_ / "frame.fits"}), ExitsWith(0));
  ExpectFirstDeviceDead(server.get());
}

TEST_F(DyingDevice, LosesADetachedJobToTheOthersToo) {
  const auto server = Start("fake_dying_late", "0,1");
  EXPECT_THAT(SpexAt(server->address(), {"watch", SubmitTo(*server)}, {"-o", output_ / "frame.fits"}),
              ExitsWith(0));
  ExpectFirstDeviceDead(server.get());
  EXPECT_EQ(Count(ReadBytes(server->log()), "\"job_waits_again\""), 1u);
}

TEST_F(DyingDevice, ThatIsTheLastSendsClientsToAnotherServerAndEndsItsOwn) {
  const auto dying = Start("fake_dying", "0");
  const TestServer other({"--device", "cuda", "--allow-root", input_.folder()},
                         With(FakeModule("fake_cuda")));
  // Some jobs go to the other server from the start.
  std::string output;
  for (int job = 0; job < 100 && output.find("trying again") == std::string::npos; ++job) {
    const RunResult run = SpexAt(dying->address() + "," + other.address(), Files(),
                                 {"-o", output_ / absl::StrCat("frame", job, ".fits")});
    ASSERT_EQ(run.code, 0) << run.output;
    output = run.output;
  }
  EXPECT_THAT(output, HasSubstr("an illegal address in solve; trying again"));
  ExpectEnded(dying.get());
}

TEST_F(DyingDevice, ThatIsTheLastLeavesDetachedJobsToTheNextServer) {
  const auto dying = Start("fake_dying_late", "0");
  const std::string job = SubmitTo(*dying);
  ExpectEnded(dying.get());
  const auto next = Start("fake_cuda", "0");
  EXPECT_THAT(SpexAt(next->address(), {"watch", job}, {"-o", output_ / "frame.fits"}), ExitsWith(0));
  EXPECT_THAT(output_.Entries(), ElementsAre("frame.fits"));
}

}  // namespace
}  // namespace spexd::testing
