// spex submit and watch with spexd itself, which is killed in between.
#include <signal.h>

#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "tests/service/support/inputs.h"
#include "tests/support/matchers.h"
#include "tests/support/process.h"

namespace spexd::testing {
namespace {

class DetachedEndToEnd : public ::testing::TestWithParam<bool> {
 protected:
  void Start() {
    spexd_ = std::make_unique<Process>(
        std::vector<std::string>{BinFolder() + "/spexd", "--listen", "127.0.0.1:0", "--http", "none",
                                 "--port-file", folder_ / "ports.json", "--allow-root", folder_.path(),
                                 "--device", "cpu", "--threads", "1", "--jobs-dir", folder_ / "jobs"});
    ASSERT_TRUE(spexd_->WaitForLine("\"started\"")) << spexd_->output();
    const auto ports = nlohmann::json::parse(ReadBytes(folder_ / "ports.json"));
    of_server_.environment = {"SPEXD_SERVER=" + ports["grpc"].get<std::string>()};
  }
  // Runs `command` with the small frame on a grid that takes a while.
  RunResult RunWithFrame(std::vector<std::string> command, const std::vector<std::string>& more) const {
    for (const std::string& argument :
         {std::string("-i"), folder_ / "preproc.fits", std::string("-p"), folder_ / "psf.fits",
          std::string("-w"), std::string("6000,6040,0.2"), std::string("--bundlesize"), std::string("2")})
      command.push_back(argument);
    if (GetParam()) command.push_back("--upload");
    command.insert(command.end(), more.begin(), more.end());
    return Spex(std::move(command), of_server_);
  }

  InputFolder folder_;
  ProcessOptions of_server_;
  std::unique_ptr<Process> spexd_;
};

TEST_P(DetachedEndToEnd, AJobOutlivesItsServerAndGivesTheFileOfExtract) {
  Start();
  const RunResult submitted = RunWithFrame({"submit", "-q", "--request-id", "night-7"}, {"--model"});
  ASSERT_EQ(submitted.code, 0) << submitted.output;
  const std::string job(absl::StripSuffix(submitted.output, "\n"));
  spexd_->Signal(SIGKILL);
  EXPECT_EQ(spexd_->Wait(), 128 + SIGKILL);
  Start();
  EXPECT_EQ(RunWithFrame({"submit", "-q", "--request-id", "night-7"}, {"--model"}).output, job + "\n");
  const RunResult watched =
      Spex({"watch", job, "-o", folder_ / "watched.fits", "-m", folder_ / "watched-model.fits"}, of_server_);
  ASSERT_EQ(watched.code, 0) << watched.output << spexd_->output();
  const RunResult extracted =
      RunWithFrame({"extract"}, {"-o", folder_ / "extracted.fits", "-m", folder_ / "extracted-model.fits"});
  ASSERT_EQ(extracted.code, 0) << extracted.output;
  EXPECT_TRUE(ReadBytes(folder_ / "watched.fits") == ReadBytes(folder_ / "extracted.fits"));
  EXPECT_TRUE(ReadBytes(folder_ / "watched-model.fits") == ReadBytes(folder_ / "extracted-model.fits"));
  const RunResult listed = Spex({"jobs", "--json", "--state", "done"}, of_server_);
  EXPECT_EQ(nlohmann::json::parse(listed.output).at(0).at("jobs").size(), 1u) << listed.output;
  EXPECT_THAT(Spex({"watch", job, "-o", folder_ / "again.fits"}, of_server_),
              ExitsWith(2, HasSubstr("released")));
}

// Returns the lines of the server's log that are about a job.
std::vector<nlohmann::json> JobLines(const std::string& log) {
  std::vector<nlohmann::json> found;
  for (const absl::string_view line : absl::StrSplit(log, '\n', absl::SkipEmpty())) {
    nlohmann::json entry = nlohmann::json::parse(line, nullptr, false);
    if (entry.is_object() && entry.contains("job")) found.push_back(std::move(entry));
  }
  return found;
}

TEST_P(DetachedEndToEnd, AJobsLogLinesHaveTheTraceOfTheEnvironment) {
  const std::string trace_id = "0af7651916cd43dd8448eb211c80319c", span_id = "b7ad6b7169203331";
  Start();
  of_server_.environment.push_back("TRACEPARENT=00-" + trace_id + "-" + span_id + "-01");
  ASSERT_EQ(RunWithFrame({"extract"}, {"-q", "-o", folder_ / "frame.fits"}).code, 0);
  ASSERT_EQ(RunWithFrame({"submit", "-q"}, {}).code, 0);
  ASSERT_TRUE(spexd_->WaitForLine("\"detached_job_ended\"")) << spexd_->output();
  int spans = 0;
  for (const nlohmann::json& line : JobLines(spexd_->output())) {
    EXPECT_EQ(line.value("trace_id", ""), trace_id) << line;
    // A detached job outlives the span that submitted it.
    if (!line.contains("span_id")) continue;
    EXPECT_EQ(line["span_id"], span_id) << line;
    ++spans;
  }
  EXPECT_EQ(spans, 4);  // job_accepted, estimate, job_ended; job_submitted
}

TEST_P(DetachedEndToEnd, ATraceOfTheEnvironmentThatIsNotValidIsIgnored) {
  Start();
  of_server_.environment.push_back("TRACEPARENT=00-\n");
  ASSERT_EQ(RunWithFrame({"extract"}, {"-q", "-o", folder_ / "frame.fits"}).code, 0);
  ASSERT_TRUE(spexd_->WaitForLine("\"job_ended\"")) << spexd_->output();
  EXPECT_THAT(spexd_->output(), Not(HasSubstr("trace_id")));
}

INSTANTIATE_TEST_SUITE_P(ByPathAndByUpload, DetachedEndToEnd, ::testing::Bool());

}  // namespace
}  // namespace spexd::testing
