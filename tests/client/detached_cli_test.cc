// spex submit, watch, jobs and cancel as a user runs them, on a server that stands in for spexd.
#include <signal.h>

#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>

#include "tests/client/support/fake_connection.h"
#include "tests/client/support/stand_in_jobs.h"
#include "tests/client/support/stand_in_server.h"
#include "tests/support/matchers.h"
#include "tests/support/process.h"

namespace spexd::testing {
namespace {

class DetachedCommands : public ::testing::Test {
 protected:
  void Start(StandInJobs::Behaviour behaviour = {}) {
    server_.reset();  // a previous server uses the jobs
    jobs_ = std::make_unique<StandInJobs>(std::move(behaviour));
    server_ = std::make_unique<StandInServer>(StandInAnswer{GoodEvents(), grpc::Status::OK}, jobs_.get());
  }
  RunResult Run(std::vector<std::string> arguments) const {
    ProcessOptions options;
    options.environment = {"SPEXD_SERVER=" + server_->address()};
    return Spex(std::move(arguments), options);
  }
  RunResult Submit(std::vector<std::string> more = {}) const {
    more.insert(more.begin(), {"submit", "-i", "/server/image.fits", "-p", "/server/psf.fits"});
    return Run(std::move(more));
  }
  RunResult Watch(std::vector<std::string> more = {}) const {
    more.insert(more.begin(), {"watch", "job-1", "-o", Output()});
    return Run(std::move(more));
  }
  std::string Output() const { return folder_ / "frame.fits"; }
  // Runs a command until the server holds its call, and kills it then.
  void RunUntilKilled(std::vector<std::string> command) const {
    command.insert(command.begin(), BinFolder() + "/spex");
    command.insert(command.end(), {"--server", server_->address()});
    Process process(command);
    jobs_->AwaitHang();
    process.Signal(SIGKILL);
    EXPECT_EQ(process.Wait(), 128 + SIGKILL) << process.output();
  }

  TempFolder folder_;
  std::unique_ptr<StandInJobs> jobs_;
  std::unique_ptr<StandInServer> server_;
};

TEST_F(DetachedCommands, SubmitPrintsTheIdAlone) {
  Start();
  const RunResult run = Submit({"--request-id", "night 7", "--priority", "5", "--keep", "60", "--deadline",
                                "3600", "-n", "5", "--no-scores", "-m"});
  EXPECT_EQ(run.code, 0) << run.output;
  EXPECT_EQ(run.output, "job-1\n");
  const StandInJobs::Job job = jobs_->jobs().at(0);
  EXPECT_EQ(job.header.request_id(), "night 7");
  EXPECT_EQ(job.header.keep_seconds(), 60u);
  EXPECT_EQ(job.header.deadline_seconds(), 3600u);
  EXPECT_EQ(job.header.job().priority(), 5);
  EXPECT_EQ(job.header.job().fibre_count(), 5u);
  EXPECT_TRUE(job.header.job().want_model());
  EXPECT_THAT(Submit({"--request-id", "night 7"}).output,
              AllOf(HasSubstr("has a job already"), HasSubstr("job-1\n")));
  EXPECT_EQ(Submit({"--request-id", "night 7", "-q"}).output, "job-1\n");
}

TEST_F(DetachedCommands, WatchWritesTheFileOfExtractAndReleasesTheResults) {
  Start({.breaks = {2}});
  ASSERT_EQ(Submit().code, 0);
  const RunResult run = Watch();
  ASSERT_EQ(run.code, 0) << run.output;
  EXPECT_THAT(run.output, AllOf(HasSubstr("Done job-1 spectra 12:15\n"), HasSubstr("trying again"),
                                HasSubstr("Wrote " + Output())));
  EXPECT_EQ(jobs_->jobs().at(0).record.acknowledged(), 5u);
  const std::string extracted = folder_ / "extracted.fits";
  ASSERT_EQ(Run({"-i", "/server/image.fits", "-p", "/server/psf.fits", "-o", extracted}).code, 0);
  EXPECT_TRUE(ReadBytes(Output()) == ReadBytes(extracted));
  const RunResult again = Watch();
  EXPECT_EQ(again.code, 2);
  EXPECT_THAT(again.output, HasSubstr("job-1 were fetched and released before"));
  EXPECT_TRUE(ReadBytes(Output()) == ReadBytes(extracted));  // the existing file stays
}

TEST_F(DetachedCommands, WatchWritesTheModelOfAJobThatHasOne) {
  Start({.model = true});
  ASSERT_EQ(Submit({"--model"}).code, 0);
  ASSERT_EQ(Watch({"-m", folder_ / "model.fits", "-q"}).code, 0);
  EXPECT_THAT(folder_.Entries(), ElementsAre("frame.fits", "model.fits"));
}

TEST_F(DetachedCommands, WatchKeepsTheResultsOfAJobThatHasNoModel) {
  Start();
  ASSERT_EQ(Submit().code, 0);
  const RunResult run = Watch({"-m", folder_ / "model.fits"});
  EXPECT_EQ(run.code, 2);
  EXPECT_THAT(run.output, HasSubstr("submitted without --model"));
  EXPECT_THAT(folder_.Entries(), IsEmpty());
  EXPECT_EQ(jobs_->jobs().at(0).record.acknowledged(), 0u);
}

TEST_F(DetachedCommands, WatchChecksItsNamesFirst) {
  Start();
  ASSERT_EQ(Submit().code, 0);
  EXPECT_EQ(Run({"watch", "job-1", "-o", "/nowhere/frame.fits"}).code, 2);
  EXPECT_EQ(Run({"watch", "job-1", "-o", Output(), "-m", Output()}).code, 2);
  EXPECT_THAT(jobs_->watched(), IsEmpty());
}

TEST_F(DetachedCommands, WatchKeepsTheResultsWhileTheFileIsNotSafe) {
  Start();
  ASSERT_EQ(Submit().code, 0);
  ProcessOptions options;
  options.max_file_bytes = 1000;
  options.environment = {"SPEXD_SERVER=" + server_->address()};
  const RunResult run = Spex({"watch", "job-1", "-o", Output()}, options);
  EXPECT_EQ(run.code, 4) << run.output;
  EXPECT_THAT(folder_.Entries(), IsEmpty());
  EXPECT_EQ(jobs_->jobs().at(0).record.acknowledged(), 0u);
  EXPECT_EQ(Watch().code, 0);
}

TEST_F(DetachedCommands, WatchEndsAsTheJobDid) {
  const std::pair<StandInJobs::Behaviour, int> ends[] = {
      {{.end = grpc::Status(grpc::StatusCode::INVALID_ARGUMENT, "no HDU IMAGE")}, 2},
      {{.end = grpc::Status(grpc::StatusCode::UNAVAILABLE, "no HDU IMAGE")}, 4},
      {{.end = grpc::Status(grpc::StatusCode::DEADLINE_EXCEEDED, "no HDU IMAGE")}, 2},
      {{.end = grpc::Status(grpc::StatusCode::RESOURCE_EXHAUSTED, "no HDU IMAGE")}, 2},
      {{.end = grpc::Status(grpc::StatusCode::INTERNAL, "no HDU IMAGE")}, 4}};
  for (const auto& [behaviour, code] : ends) {
    Start(behaviour);
    ASSERT_EQ(Submit().code, 0);
    const RunResult run = Watch();
    EXPECT_EQ(run.code, code);
    EXPECT_THAT(run.output, HasSubstr("no HDU IMAGE"));
  }
  Start({.cancelled = true});
  ASSERT_EQ(Submit().code, 0);
  EXPECT_EQ(Watch().code, 2);
  EXPECT_EQ(Run({"watch", "job-2", "-o", Output()}).code, 2);
  EXPECT_THAT(folder_.Entries(), IsEmpty());
}

TEST_F(DetachedCommands, AnInterruptedWatchLeavesTheJobRunning) {
  Start({.runs = true});
  ASSERT_EQ(Submit().code, 0);
  Process watch({BinFolder() + "/spex", "watch", "job-1", "-o", Output(), "--server", server_->address()});
  ASSERT_TRUE(watch.WaitForLine("Done job-1")) << watch.output();
  watch.Signal(SIGINT);
  EXPECT_EQ(watch.Wait(), 130);
  EXPECT_THAT(watch.output(), HasSubstr("the job goes on"));
  EXPECT_EQ(Watch({"--timeout", "0.2"}).code, 3);
  EXPECT_THAT(folder_.Entries(), IsEmpty());
}

TEST_F(DetachedCommands, KilledAtAnyStageAndRunAgainGiveEachBundleOnce) {
  using Stage = StandInJobs::Stage;
  Start();
  const std::string extracted = folder_ / "extracted.fits";
  ASSERT_EQ(Run({"-i", "/server/image.fits", "-p", "/server/psf.fits", "-o", extracted}).code, 0);
  const std::string whole = ReadBytes(extracted);
  const std::vector<std::string> submit = {
      "submit", "-i", "/server/image.fits", "-p", "/server/psf.fits", "--request-id", "night 7"};
  const std::vector<std::string> watch = {"watch", "job-1", "-o", Output(), "-q"};
  const StandInJobs::Behaviour stages[] = {{.holds = Stage::kReceiving},
                                           {.holds = Stage::kTaken},
                                           {.holds = Stage::kWatching, .holds_before = 1},
                                           {.holds = Stage::kWatching, .holds_before = 2},
                                           {.holds = Stage::kWatching, .holds_before = 3},
                                           {.holds = Stage::kWatching, .holds_before = 4},
                                           {.holds = Stage::kWatching, .holds_before = 5},
                                           {.holds = Stage::kEnding},
                                           {.holds = Stage::kAcking},
                                           {.holds = Stage::kAcked}};
  for (const StandInJobs::Behaviour& stage : stages) {
    SCOPED_TRACE(::testing::Message()
                 << "stage " << static_cast<int>(stage.holds) << ", event " << stage.holds_before);
    std::filesystem::remove(Output());
    Start(stage);
    const bool submits = stage.holds == Stage::kReceiving || stage.holds == Stage::kTaken;
    if (submits) RunUntilKilled(submit);
    EXPECT_THAT(Run(submit).output, HasSubstr("job-1\n"));
    EXPECT_THAT(jobs_->jobs(), SizeIs(1));
    if (!submits) RunUntilKilled(watch);
    const RunResult again = Run(watch);
    EXPECT_EQ(again.code, stage.holds == Stage::kAcked ? 2 : 0) << again.output;  // 2: released before
    EXPECT_TRUE(ReadBytes(Output()) == whole);
    EXPECT_EQ(jobs_->jobs().at(0).record.acknowledged(), 5u);
  }
}

TEST_F(DetachedCommands, JobsListsThemAll) {
  Start({.end = grpc::Status(grpc::StatusCode::NOT_FOUND, "the frame has gone")});
  for (int k = 0; k < 3; ++k) ASSERT_EQ(Submit().code, 0);
  const RunResult run = Run({"jobs"});
  EXPECT_EQ(run.code, 0);
  EXPECT_THAT(run.output,
              AllOf(HasSubstr("3 jobs at 127.0.0.1"), HasSubstr("| failed"), HasSubstr("image.fits"),
                    HasSubstr("2023-11-14 22:13:20"), HasSubstr("job-3: the frame has gone")));
  EXPECT_THAT(Run({"jobs", "--state", "done,running"}).output,
              AllOf(HasSubstr("0 jobs"), Not(HasSubstr("job-3"))));
  const nlohmann::json json = nlohmann::json::parse(Run({"jobs", "--json"}).output);
  ASSERT_THAT(json, SizeIs(1));
  EXPECT_EQ(json.at(0).at("address"), server_->address());
  ASSERT_THAT(json.at(0).at("jobs"), SizeIs(3));
  EXPECT_EQ(json.at(0).at("jobs").at(0).at("state"), "DETACHED_STATE_FAILED");
  EXPECT_EQ(Run({"jobs", "--state", "lost"}).code, 2);
}

TEST_F(DetachedCommands, JobsListsThemOfEveryServerAsOneArray) {
  StandInJobs none;
  const StandInServer other(StandInAnswer(), &none);
  Start();
  ASSERT_EQ(Submit().code, 0);
  const std::string both = other.address() + "," + server_->address();
  const nlohmann::json json = nlohmann::json::parse(Run({"jobs", "--json", "--server", both}).output);
  ASSERT_THAT(json, SizeIs(2));
  EXPECT_EQ(json.at(0).at("address"), other.address());
  EXPECT_THAT(json.at(0).at("jobs"), IsEmpty());
  EXPECT_EQ(json.at(1).at("address"), server_->address());
  EXPECT_THAT(json.at(1).at("jobs"), SizeIs(1));
}

TEST_F(DetachedCommands, CancelStopsAJobThatRuns) {
  Start({.runs = true});
  ASSERT_EQ(Submit().code, 0);
  const RunResult run = Run({"cancel", "job-1"});
  EXPECT_EQ(run.code, 0);
  EXPECT_EQ(run.output, "job-1 cancelled\n");
  EXPECT_EQ(Run({"cancel", "job-2"}).code, 2);
}

TEST_F(DetachedCommands, CancelStopsAJobOfASecondServerIfTheFirstOneHangs) {
  StandInJobs silent({.hangs = true});
  const StandInServer first(StandInAnswer(), &silent);
  Start({.runs = true});
  ASSERT_EQ(Submit().code, 0);
  const RunResult run =
      Run({"cancel", "job-1", "--timeout", "5", "--server", first.address() + "," + server_->address()});
  EXPECT_EQ(run.code, 0);
  EXPECT_EQ(run.output, "job-1 cancelled\n");
}

TEST_F(DetachedCommands, EndWith3WhereNoServerIs) {
  Start();
  ASSERT_EQ(Submit().code, 0);
  const std::string gone = "unix:" + folder_.path() + "/none";
  for (const std::vector<std::string>& command :
       {std::vector<std::string>{"jobs"}, {"cancel", "job-1"}, {"watch", "job-1", "-o", Output()}}) {
    std::vector<std::string> arguments = Joined(command, {"--server", gone});
    EXPECT_EQ(Run(arguments).code, 3) << command[0];
  }
  EXPECT_EQ(Submit({"--server", gone}).code, 3);
}

TEST_F(DetachedCommands, NameWhatIsWrong) {
  Start();
  EXPECT_EQ(Submit({"--priority", "11"}).code, 2);
  EXPECT_EQ(Submit({"--keep", "-1"}).code, 2);
  EXPECT_EQ(Submit({"--deadline", "-1"}).code, 2);
  EXPECT_EQ(Submit({"-w", "many"}).code, 2);
  EXPECT_EQ(Submit({"-o", Output()}).code, 2);                      // submit writes no file
  EXPECT_EQ(Submit({"--fiberflat", "/server/flat.fits"}).code, 2);  // without a product
  EXPECT_EQ(Run({"watch", "job-1"}).code, 2);
  EXPECT_EQ(Run({"cancel"}).code, 2);
  EXPECT_THAT(jobs_->jobs(), IsEmpty());
}

}  // namespace
}  // namespace spexd::testing
