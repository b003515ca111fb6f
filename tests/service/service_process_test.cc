// The real binary, with the real engine: signals, exit codes, a client that is killed.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <httplib.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <thread>

#include "absl/strings/match.h"
#include "core/base/mutex.h"
#include "nlohmann/json.hpp"
#include "tests/service/harness.h"

namespace spexd::testing {
namespace {

using grpc::StatusCode;
using ::testing::HasSubstr;

// A child whose output is read line by line; killed if it still runs at the end.
class Process {
 public:
  Process(const std::vector<std::string>& arguments, int stream) {
    int ends[2];
    if (pipe(ends) != 0) std::abort();
    std::vector<char*> argv;
    for (const std::string& argument : arguments) argv.push_back(const_cast<char*>(argument.c_str()));
    argv.push_back(nullptr);
    pid_ = fork();
    if (pid_ == 0) {
      dup2(ends[1], stream);
      close(ends[0]);
      close(ends[1]);
      execv(argv[0], argv.data());
      _exit(127);
    }
    close(ends[1]);
    reader_ = std::thread([this, from = ends[0]] { ReadLines(from); });
  }
  ~Process() {
    if (!status_.has_value()) {
      kill(pid_, SIGKILL);
      Wait();
    }
    reader_.join();
  }
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;

  // Waits for a line with `text`; "" if the child ended without one.
  std::string WaitForLine(const std::string& text) {
    MutexLock lock(&mutex_);
    for (size_t next = 0;;) {
      for (; next < lines_.size(); ++next) {
        if (absl::StrContains(lines_[next], text)) return lines_[next];
      }
      if (ended_) return "";
      changed_.Wait(&mutex_);
    }
  }
  void Signal(int signal) { kill(pid_, signal); }
  // The exit code, or minus the signal that ended it.
  int Wait() {
    int status = 0;
    waitpid(pid_, &status, 0);
    status_ = WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
    return *status_;
  }

 private:
  void ReadLines(int from) {
    std::string text;
    char block[4096];
    for (ssize_t got; (got = read(from, block, sizeof(block))) > 0;) {
      text.append(block, static_cast<size_t>(got));
      MutexLock lock(&mutex_);
      for (size_t end; (end = text.find('\n')) != std::string::npos; text.erase(0, end + 1)) {
        lines_.push_back(text.substr(0, end));
      }
      changed_.NotifyAll();
    }
    close(from);
    MutexLock lock(&mutex_);
    ended_ = true;
    changed_.NotifyAll();
  }

  pid_t pid_ = -1;
  std::optional<int> status_;
  std::thread reader_;
  Mutex mutex_;
  CondVar changed_;
  std::vector<std::string> lines_ ABSL_GUARDED_BY(mutex_);
  bool ended_ ABSL_GUARDED_BY(mutex_) = false;
};

class ProcessTest : public ::testing::Test {
 protected:
  ProcessTest() {
    WritePsfFile(folder_ / "psf.fits");
    WritePreprocFile(folder_ / "preproc.fits");
  }
  static std::string Binary() {
    const char* folder = std::getenv("SPEXD_BIN");
    return folder == nullptr ? "spexd" : std::string(folder) + "/spexd";
  }
  void Start() {
    spexd_ = std::make_unique<Process>(
        std::vector<std::string>{Binary(), "--listen", "127.0.0.1:0", "--http", "127.0.0.1:0", "--port-file",
                                 folder_ / "ports.json", "--allow-root", folder_.path().string(), "--threads",
                                 "1", "--grace-seconds", "120"},
        STDERR_FILENO);
    ASSERT_NE(spexd_->WaitForLine("\"started\""), "") << Binary() << " did not start";
    ports_ = nlohmann::json::parse(ReadBytes(folder_ / "ports.json"));
    stub_ = v1::Extraction::NewStub(
        grpc::CreateChannel(ports_["grpc"].get<std::string>(), grpc::InsecureChannelCredentials()));
  }
  v1::JobHeader Header() const {
    v1::JobHeader header;
    header.mutable_image()->set_path(folder_ / "preproc.fits");
    header.mutable_psf()->set_path(folder_ / "psf.fits");
    header.set_bundle_size(5);
    return header;
  }
  v1::JobHeader UploadHeader() const {
    v1::JobHeader header = Header();
    header.mutable_image()->mutable_raw()->set_rows(kRows);
    header.mutable_image()->mutable_raw()->set_columns(kColumns);
    return header;
  }
  using Stream = grpc::ClientReaderWriter<v1::ExtractRequest, v1::ExtractEvent>;
  static std::unique_ptr<Stream> Begin(v1::Extraction::Stub* stub, const v1::JobHeader& header,
                                       grpc::ClientContext* context) {
    auto stream = stub->Extract(context);
    v1::ExtractRequest request;
    *request.mutable_header() = header;
    stream->Write(request);
    return stream;
  }
  static void Upload(Stream* stream) {
    v1::ExtractRequest request;
    request.mutable_chunk()->set_input(v1::INPUT_IMAGE);
    request.mutable_chunk()->set_payload(RawArrays(kRows, kColumns));
    stream->Write(request);
    request.mutable_end()->set_input(v1::INPUT_IMAGE);
    stream->Write(request);
  }
  // Reads to the end; the number of fibres that came.
  static int ReadAll(Stream* stream, grpc::Status* status) {
    int fibres = 0;
    v1::ExtractEvent event;
    while (stream->Read(&event)) fibres += static_cast<int>(event.bundle().fibre_count());
    *status = stream->Finish();
    return fibres;
  }
  void ExpectServes() {
    grpc::ClientContext context;
    grpc::Status status;
    const auto stream = Begin(stub_.get(), Header(), &context);
    stream->WritesDone();
    EXPECT_EQ(ReadAll(stream.get(), &status), kFibres);
    EXPECT_TRUE(status.ok()) << status.error_message();
  }

  TempFolder folder_;
  std::unique_ptr<Process> spexd_;
  nlohmann::json ports_;
  std::unique_ptr<v1::Extraction::Stub> stub_;
};

TEST_F(ProcessTest, ServesJobsAndMetricsOnThePortsThatItsFileNames) {
  Start();
  ExpectServes();
  httplib::Client http("127.0.0.1", ports_["http_port"].get<int>());
  const auto metrics = http.Get("/metrics");
  ASSERT_TRUE(metrics);
  EXPECT_THAT(metrics->body, HasSubstr("spexd_jobs_total{outcome=\"ok\"} 1"));
  EXPECT_THAT(metrics->body, HasSubstr("spexd_spectra_total 10"));
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
  const auto stream = Begin(stub_.get(), UploadHeader(), &context);
  v1::ExtractEvent accepted;
  ASSERT_TRUE(stream->Read(&accepted));
  spexd_->Signal(SIGTERM);
  ASSERT_NE(spexd_->WaitForLine("\"draining\""), "");
  grpc::ClientContext late;
  grpc::Status refused;
  ReadAll(Begin(stub_.get(), Header(), &late).get(), &refused);
  EXPECT_EQ(refused.error_code(), StatusCode::UNAVAILABLE);
  Upload(stream.get());
  stream->WritesDone();
  grpc::Status status;
  EXPECT_EQ(ReadAll(stream.get(), &status), kFibres);
  EXPECT_TRUE(status.ok()) << status.error_message();
  EXPECT_EQ(spexd_->Wait(), 0);
}

TEST_F(ProcessTest, EndsAtOnceOnASecondSigterm) {
  Start();
  grpc::ClientContext context;
  const auto stream = Begin(stub_.get(), UploadHeader(), &context);
  v1::ExtractEvent accepted;
  ASSERT_TRUE(stream->Read(&accepted));
  spexd_->Signal(SIGTERM);
  ASSERT_NE(spexd_->WaitForLine("\"draining\""), "");
  spexd_->Signal(SIGTERM);
  EXPECT_EQ(spexd_->Wait(), 1);
  grpc::Status status;
  ReadAll(stream.get(), &status);
  EXPECT_FALSE(status.ok());
}

// Not a test: the client that ClientsThatAreKilled runs as a process of its own.
TEST_F(ProcessTest, DISABLED_ClientThatWaitsToBeKilled) {
  const char* address = std::getenv("SPEXD_TEST_ADDRESS");
  const char* folder = std::getenv("SPEXD_TEST_FOLDER");
  ASSERT_TRUE(address != nullptr && folder != nullptr);
  const auto stub = v1::Extraction::NewStub(grpc::CreateChannel(address, grpc::InsecureChannelCredentials()));
  v1::JobHeader header = UploadHeader();
  header.mutable_psf()->set_path(std::string(folder) + "/psf.fits");
  grpc::ClientContext context;
  const auto stream = Begin(stub.get(), header, &context);
  v1::ExtractEvent event;
  ASSERT_TRUE(stream->Read(&event));
  std::cout << "ready to be killed" << std::endl;
  while (stream->Read(&event)) {
  }
}

TEST_F(ProcessTest, SurvivesAClientThatIsKilled) {
  Start();
  setenv("SPEXD_TEST_ADDRESS", ports_["grpc"].get<std::string>().c_str(), 1);
  setenv("SPEXD_TEST_FOLDER", folder_.path().c_str(), 1);
  Process client({"/proc/self/exe", "--gtest_also_run_disabled_tests",
                  "--gtest_filter=ProcessTest.DISABLED_ClientThatWaitsToBeKilled"},
                 STDOUT_FILENO);
  ASSERT_NE(client.WaitForLine("ready to be killed"), "");
  client.Signal(SIGKILL);
  EXPECT_EQ(client.Wait(), -SIGKILL);
  EXPECT_THAT(spexd_->WaitForLine("\"job_ended\""), HasSubstr("\"cancelled\""));
  ExpectServes();
  spexd_->Signal(SIGTERM);
  EXPECT_EQ(spexd_->Wait(), 0);
}

TEST_F(ProcessTest, SaysWhatIsWrongWithItsFlags) {
  Process wrong({Binary(), "--listen", "0.0.0.0:0"}, STDERR_FILENO);
  EXPECT_NE(wrong.WaitForLine("--insecure-any-address"), "");
  EXPECT_EQ(wrong.Wait(), 2);
  Process file(
      {Binary(), "--listen", "127.0.0.1:0", "--http", "none", "--port-file", folder_ / "psf.fits/ports"},
      STDERR_FILENO);
  EXPECT_NE(file.WaitForLine("--port-file"), "");
  EXPECT_EQ(file.Wait(), 1);
  Process help({Binary(), "--help"}, STDOUT_FILENO);
  EXPECT_NE(help.WaitForLine("--allow-root"), "");
  EXPECT_EQ(help.Wait(), 0);
}

}  // namespace
}  // namespace spexd::testing
