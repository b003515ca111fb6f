// The real program, with the real engine: signals, exit codes.
#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "nlohmann/json.hpp"
#include "tests/service/support/harness.h"
#include "tests/service/support/scrape.h"
#include "tests/service/support/server_command.h"
#include "tests/support/matchers.h"
#include "tests/support/process.h"

namespace spexd::testing {
namespace {

using grpc::StatusCode;

class ProcessTest : public ::testing::Test {
 protected:
  static std::string Binary() { return BinFolder() + "/spexd"; }
  void Start(const std::vector<std::string>& flags = {}) {
    spexd_ =
        std::make_unique<Process>(Joined(ServerCommand(folder_, {"--listen", "127.0.0.1:0", "--http",
                                                                 "127.0.0.1:0", "--grace-seconds", "120"}),
                                         flags));
    ASSERT_TRUE(spexd_->WaitForLine("\"started\"")) << Binary() << " did not start";
    ports_ = nlohmann::json::parse(ReadBytes(folder_ / "ports.json"));
    stub_ = v1::Extraction::NewStub(
        grpc::CreateChannel(ports_["grpc"].get<std::string>(), grpc::InsecureChannelCredentials()));
  }
  std::string Http() const { return absl::StrCat("127.0.0.1:", ports_["http_port"].get<int>()); }
  static std::unique_ptr<ExtractStream> Begin(v1::Extraction::Stub* stub, const v1::JobHeader& header,
                                              grpc::ClientContext* context) {
    auto stream = stub->Extract(context);
    SendHeader(stream.get(), header);
    return stream;
  }
  // Reads to the end; returns the number of fibres that arrived.
  static int ReadAll(ExtractStream* stream, grpc::Status* status) {
    int fibres = 0;
    v1::ExtractEvent event;
    while (stream->Read(&event)) fibres += static_cast<int>(event.bundle().fibre_count());
    *status = stream->Finish();
    return fibres;
  }
  void ExpectServes() {
    grpc::ClientContext context;
    grpc::Status status;
    const auto stream = Begin(stub_.get(), PathHeader(folder_, 5), &context);
    stream->WritesDone();
    EXPECT_EQ(ReadAll(stream.get(), &status), kFibres);
    EXPECT_TRUE(status.ok()) << status.error_message();
  }

  InputFolder folder_;
  std::unique_ptr<Process> spexd_;
  nlohmann::json ports_;
  std::unique_ptr<v1::Extraction::Stub> stub_;
};

TEST_F(ProcessTest, SighupChangesWhatIsLoggedFromThenOn) {
  const std::string config = folder_ / "spexd.conf";
  const auto set_level = [&](const std::string& level) {
    WriteText(config, "log-level = " + level + "\n");
    if (spexd_ == nullptr) return;
    spexd_->Signal(SIGHUP);
    ASSERT_TRUE(spexd_->WaitForLine("\"reloaded\""));
  };
  set_level("info");
  Start({"--config", config});
  set_level("error");
  const size_t quiet = spexd_->output().size();
  ExpectServes();
  set_level("info");
  EXPECT_EQ(spexd_->output().find("\"job_ended\"", quiet), std::string::npos);
  ExpectServes();
  EXPECT_TRUE(spexd_->WaitForLine("\"job_ended\""));
  spexd_->Signal(SIGTERM);
  EXPECT_EQ(spexd_->Wait(), 0);
}

// Threads that libraries (OpenBLAS) started before main block no signal, so the system may choose them.
TEST_F(ProcessTest, HeedsSignalsWhicheverThreadTheyReach) {
  Start();
  const int id = spexd_->id();
  for (const auto& thread : std::filesystem::directory_iterator(absl::StrCat("/proc/", id, "/task"))) {
    int number = 0;
    ASSERT_TRUE(absl::SimpleAtoi(thread.path().filename().string(), &number));
    ASSERT_TRUE(syscall(SYS_tgkill, id, number, SIGHUP) == 0 || errno == ESRCH);  // the thread may have ended
  }
  ASSERT_TRUE(spexd_->WaitForLine("\"reloaded\"")) << spexd_->output();
  ExpectServes();
  spexd_->Signal(SIGTERM);
  EXPECT_EQ(spexd_->Wait(), 0);
}

TEST_F(ProcessTest, ServesJobsAndMetricsOnThePortsThatItsFileNames) {
  Start();
  ExpectServes();
  const std::string metrics = HttpGet(Http(), "/metrics").second;
  EXPECT_THAT(metrics, HasSubstr("spexd_jobs_total{outcome=\"ok\"} 1"));
  EXPECT_THAT(metrics, HasSubstr("spexd_spectra_total 10"));
  grpc::ClientContext context;
  v1::Capabilities status;
  EXPECT_TRUE(stub_->GetCapabilities(&context, {}, &status).ok());
  EXPECT_EQ(status.engines(0).kind(), "cpu");
  spexd_->Signal(SIGINT);
  EXPECT_EQ(spexd_->Wait(), 0);
}

TEST_F(ProcessTest, FinishesItsJobAfterSigtermAndExitsWithZero) {
  Start();
  grpc::ClientContext context;
  const auto stream = Begin(stub_.get(), RawHeader(folder_, 5), &context);
  v1::ExtractEvent accepted;
  ASSERT_TRUE(stream->Read(&accepted));
  spexd_->Signal(SIGTERM);
  ASSERT_TRUE(spexd_->WaitForLine("\"draining\""));
  grpc::ClientContext late;
  grpc::Status refused;
  ReadAll(Begin(stub_.get(), PathHeader(folder_, 5), &late).get(), &refused);
  EXPECT_EQ(refused.error_code(), StatusCode::UNAVAILABLE);
  SendUpload(stream.get(), {.bytes = RawArrays(kRows, kColumns), .end_sha256 = ""});
  stream->WritesDone();
  grpc::Status status;
  EXPECT_EQ(ReadAll(stream.get(), &status), kFibres);
  EXPECT_TRUE(status.ok()) << status.error_message();
  EXPECT_EQ(spexd_->Wait(), 0);
}

TEST_F(ProcessTest, EndsAtOnceOnASecondSigterm) {
  Start();
  grpc::ClientContext context;
  const auto stream = Begin(stub_.get(), RawHeader(folder_, 5), &context);
  v1::ExtractEvent accepted;
  ASSERT_TRUE(stream->Read(&accepted));
  spexd_->Signal(SIGTERM);
  ASSERT_TRUE(spexd_->WaitForLine("\"draining\""));
  spexd_->Signal(SIGTERM);
  EXPECT_EQ(spexd_->Wait(), 1);
  grpc::Status status;
  ReadAll(stream.get(), &status);
  EXPECT_FALSE(status.ok());
}

// The child inherits a soft limit of 64; this test needs a hard limit of a few hundred, which any system has.
TEST_F(ProcessTest, ServesMoreConnectionsThanItsSoftLimitOfDescriptors) {
  rlimit limit{};
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &limit), 0);
  rlimit low = limit;
  low.rlim_cur = 64;
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &low), 0);
  Start();
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &limit), 0);
  std::vector<std::shared_ptr<grpc::Channel>> channels;
  for (int k = 0; k < 100; ++k) {
    grpc::ChannelArguments own;
    own.SetInt("spexd.test.channel", k);  // otherwise gRPC shares one connection
    channels.push_back(grpc::CreateCustomChannel(ports_["grpc"].get<std::string>(),
                                                 grpc::InsecureChannelCredentials(), own));
    ASSERT_TRUE(channels.back()->WaitForConnected(std::chrono::system_clock::now() + std::chrono::minutes(1)))
        << "connection " << k;
  }
  ExpectServes();
}

TEST_F(ProcessTest, ServesAndExitsThoughNobodyReadsItsLog) {
  Start();
  ASSERT_GT(fcntl(spexd_->output_pipe(), F_SETPIPE_SZ, 4096), 0);
  for (int job = 0; job < 20; ++job) ExpectServes();  // lines for several pipes
  EXPECT_EQ(HttpGet(Http(), "/livez").first, 200);
  spexd_->Signal(SIGTERM);
  EXPECT_EQ(spexd_->WaitUnread(), 0);
}

TEST_F(ProcessTest, SaysWhatIsWrongWithItsFlags) {
  Process wrong({Binary(), "--listen", "0.0.0.0:0"});
  EXPECT_TRUE(wrong.WaitForLine("--insecure-any-address"));
  EXPECT_EQ(wrong.Wait(), 2);
  Process file(
      {Binary(), "--listen", "127.0.0.1:0", "--http", "none", "--port-file", folder_ / "psf.fits/ports"});
  EXPECT_TRUE(file.WaitForLine("--port-file"));
  EXPECT_EQ(file.Wait(), 1);
  Process help({Binary(), "--help"});
  EXPECT_TRUE(help.WaitForLine("--allow-root"));
  EXPECT_EQ(help.Wait(), 0);
}

}  // namespace
}  // namespace spexd::testing
