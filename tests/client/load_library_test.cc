// The parts of spex load: jobs on scripted servers, PSF files, decoding.
#include <sys/stat.h>

#include <algorithm>
#include <filesystem>
#include <set>

#include "client/load/ceiling.h"
#include "client/load/open_loop.h"
#include "client/load/own_psf_files.h"
#include "client/load/report.h"
#include "client/load/row.h"
#include "core/fits/readers.h"
#include "core/simulate/simulator.h"
#include "tests/client/support/fake_connection.h"
#include "tests/support/matchers.h"
#include "tests/support/temp_folder.h"

namespace spexd::load {
namespace {

using spexd::testing::FakeConnection;
using spexd::testing::GoodEvents;
using spexd::testing::Script;
using spexd::testing::TempFolder;
using std::chrono::milliseconds;

Script Good() {
  std::vector<v1::ExtractEvent> events = GoodEvents();
  v1::JobSummary& summary = *events.back().mutable_summary();
  summary.set_queue_seconds(0.25);
  summary.set_run_seconds(10);
  const std::pair<const char*, double> stages[] = {
      {"receive", 0.5}, {"decode", 2}, {"prepare", 1}, {"spots", 3}, {"normal", 4}};
  for (const auto& [name, seconds] : stages) {
    v1::StageSeconds* stage = summary.add_stages();
    stage->set_stage(name);
    stage->set_seconds(seconds);
  }
  return {events, {absl::OkStatus(), {}}};
}

std::vector<client::Job> Jobs(int count) {
  std::vector<client::Job> jobs(count);
  for (client::Job& job : jobs) {
    job.image = "frame.fits";
    job.psf = "psf.fits";
  }
  return jobs;
}

Psf SmallPsf() {
  SimulatorOptions options;
  options.fibres = 5;
  options.rows = 100;
  return SimulatePsf(options).value();
}

TEST(LoadRow, SharesTheJobsAmongItsClients) {
  FakeConnection first(std::vector<Script>(12, Good())), second(std::vector<Script>(12, Good()));
  std::stop_source cancel;
  const absl::StatusOr<Row> row = TimeJobs({&first, &second}, Jobs(12), Way::kPath, cancel.get_token());
  ASSERT_TRUE(row.ok()) << row.status();
  EXPECT_THAT(row->jobs, SizeIs(12));
  EXPECT_EQ(first.calls + second.calls, 12u);
  EXPECT_EQ(row->clients, 2);
  EXPECT_GT(row->rate(), 0);
  EXPECT_EQ(row->retries(), 0);
  for (const JobTiming& job : row->jobs) {
    EXPECT_GT(job.first_bundle, 0);
    EXPECT_LE(job.first_bundle, job.wall);
    EXPECT_EQ(job.queue, 0.25);
    EXPECT_EQ(job.extract(), 7);
    EXPECT_EQ(job.stage("spots"), 3);
    EXPECT_EQ(job.stage("send"), 0);
  }
}

TEST(LoadRow, CountsRefusedAttempts) {
  FakeConnection busy({{{}, {absl::ResourceExhaustedError("queue full"), milliseconds(1)}}, Good()});
  std::stop_source cancel;
  const absl::StatusOr<Row> row = TimeJobs({&busy}, Jobs(1), Way::kPath, cancel.get_token());
  ASSERT_TRUE(row.ok()) << row.status();
  EXPECT_EQ(row->retries(), 1);
  EXPECT_GE(row->jobs[0].wall, 0.001);
}

TEST(LoadRow, EndsWithTheErrorOfTheJobThatFailed) {
  const absl::Status error = absl::InvalidArgumentError("no HDU IMAGE");
  FakeConnection first({Good(), {{}, {error, {}}}}), second({{{}, {error, {}}}});
  std::stop_source cancel;
  const absl::StatusOr<Row> row = TimeJobs({&first, &second}, Jobs(1000), Way::kPath, cancel.get_token());
  EXPECT_EQ(row.status(), error);
  EXPECT_LE(first.calls, 2u);
  EXPECT_LE(second.calls, 1u);
  EXPECT_FALSE(cancel.stop_requested());
}

TEST(LoadRow, RefusesAFrameWithAFailedBundle) {
  Script script = Good();
  script.events.back().mutable_summary()->add_failed_bundles("bundle 1: singular");
  FakeConnection connection({script});
  std::stop_source cancel;
  EXPECT_THAT(
      TimeJobs({&connection}, Jobs(1), Way::kPath, cancel.get_token()).status(),
      StatusIs(absl::StatusCode::kInternal, HasSubstr("frame.fits: 1 bundles failed: bundle 1: singular")));
}

TEST(LoadRow, RefusesAFrameWithoutAProductThatItAsksFor) {
  FakeConnection connection({Good()});
  std::vector<client::Job> jobs = Jobs(1);
  jobs[0].products.sky = true;
  std::stop_source cancel;
  const absl::StatusOr<Row> row = TimeJobs({&connection}, jobs, Way::kPath, cancel.get_token());
  EXPECT_FALSE(row.ok());
}

TEST(LoadRow, StopsWhenItIsInterrupted) {
  FakeConnection connection(std::vector<Script>(5, Good()));
  std::stop_source cancel;
  cancel.request_stop();
  const absl::StatusOr<Row> row = TimeJobs({&connection}, Jobs(5), Way::kPath, cancel.get_token());
  EXPECT_EQ(row.status().code(), absl::StatusCode::kCancelled);
}

OpenRow Waited(const std::vector<double>& seconds) {
  OpenRow row;
  for (const double whole : seconds) {
    OpenJob job;
    job.arrival = 1;
    job.done = 1 + whole;
    row.jobs.push_back(job);
  }
  return row;
}

TEST(OpenLoop, JobsArriveAtRandomAtTheRateThatWasAsked) {
  const std::vector<double> times = PoissonArrivals(200, 50, 3);
  EXPECT_NEAR(static_cast<double>(times.size()), 10000, 400);  // four standard deviations
  EXPECT_TRUE(std::is_sorted(times.begin(), times.end()));
  EXPECT_LT(times.back(), 50);
  EXPECT_EQ(times, PoissonArrivals(200, 50, 3));
  EXPECT_NE(times, PoissonArrivals(200, 50, 4));
  int close = 0;  // of exponential gaps, 1 - exp(-1) are shorter than their mean
  for (size_t k = 1; k < times.size(); ++k) close += times[k] - times[k - 1] < 1.0 / 200;
  EXPECT_NEAR(close / static_cast<double>(times.size()), 0.632, 0.03);
}

TEST(OpenLoop, PercentilesAreValuesThatSoManyDoNotExceed) {
  std::vector<double> values;
  for (int k = 100; k >= 1; --k) values.push_back(k);
  EXPECT_EQ(Percentile(values, 50), 50);
  EXPECT_EQ(Percentile(values, 99), 99);
  EXPECT_EQ(Percentile(values, 100), 100);
  EXPECT_EQ(Percentile({7}, 99), 7);
}

TEST(OpenLoop, AWaitForAClientCountsFromTheArrival) {
  // One client, and three jobs at once.
  FakeConnection connection(std::vector<Script>(3, Good()));
  std::stop_source cancel;
  const auto row = RunOpenLoop({&connection}, Jobs(3), {0, 0, 0}, Way::kPath, cancel.get_token());
  ASSERT_TRUE(row.ok()) << row.status();
  ASSERT_THAT(row->jobs, SizeIs(3));
  for (const OpenJob& job : row->jobs) {
    EXPECT_EQ(job.end, JobEnd::kDone);
    EXPECT_EQ(job.arrival, 0);
    EXPECT_EQ(job.queue, 0.25);
    EXPECT_EQ(job.service, 10);
    EXPECT_EQ(job.whole(), job.done);
  }
  EXPECT_GE(row->jobs[2].start, row->jobs[1].done);
  EXPECT_GE(row->max_late(), row->jobs[1].done);
}

TEST(OpenLoop, CountsJobsThatAreRefusedOrFail) {
  FakeConnection connection({Good(),
                             {{}, {absl::ResourceExhaustedError("queue full"), milliseconds(1)}},
                             {{}, {absl::UnavailableError("draining"), {}}},
                             {{}, {absl::InternalError("fault"), {}}},
                             Good()});
  std::stop_source cancel;
  const auto row = RunOpenLoop({&connection}, Jobs(5), {0, 0, 0, 0, 0}, Way::kPath, cancel.get_token());
  ASSERT_TRUE(row.ok()) << row.status();
  EXPECT_EQ(connection.calls, 5u);  // none is retried
  EXPECT_EQ(row->Count(JobEnd::kDone), 2);
  EXPECT_EQ(row->Count(JobEnd::kRefused), 2);
  EXPECT_EQ(row->Count(JobEnd::kFailed), 1);
  EXPECT_THAT(row->first_error, HasSubstr("fault"));
  EXPECT_TRUE(row->Keeps(60, 40));
  EXPECT_FALSE(row->Keeps(60, 41));  // refused jobs do not meet the goal
}

TEST(OpenLoop, CountsJobsAsFailedWhoseServerDied) {
  const v1::ExtractEvent accepted = GoodEvents()[0];
  FakeConnection connection({{{accepted}, {absl::UnavailableError("the server died"), {}}}, Good()});
  std::stop_source cancel;
  const auto row = RunOpenLoop({&connection}, Jobs(2), {0, 0}, Way::kPath, cancel.get_token());
  ASSERT_TRUE(row.ok()) << row.status();
  EXPECT_EQ(row->Count(JobEnd::kDone), 1);
  EXPECT_EQ(row->Count(JobEnd::kFailed), 1);
  EXPECT_THAT(row->first_error, HasSubstr("the server died"));
}

TEST(OpenLoop, StopsWhenItIsInterrupted) {
  FakeConnection connection({Good()});
  std::stop_source cancel;
  cancel.request_stop();
  const auto row = RunOpenLoop({&connection}, Jobs(1), {3600}, Way::kPath, cancel.get_token());
  EXPECT_EQ(row.status().code(), absl::StatusCode::kCancelled);
  EXPECT_EQ(connection.calls, 0u);
}

TEST(OpenLoop, KeepsAGoalIfEnoughJobsDo) {
  const OpenRow row = Waited({1, 1, 1, 9});
  EXPECT_TRUE(row.Keeps(1, 75));
  EXPECT_FALSE(row.Keeps(1, 76));
  EXPECT_TRUE(row.Keeps(9, 100));
}

TEST(OpenLoop, FindsTheHighestRateThatKeepsTheGoal) {
  for (const double limit : {0.3, 5.0, 7.9, 60.0}) {
    int tries = 0;
    const auto rate = HighestRate(5, [&](double tried) -> absl::StatusOr<bool> {
      ++tries;
      return tried <= limit;
    });
    ASSERT_TRUE(rate.ok());
    EXPECT_LE(*rate, limit);
    EXPECT_GE(*rate, limit / 1.1);
    EXPECT_LE(tries, 10);
  }
  EXPECT_EQ(HighestRate(5, [](double) { return false; }).value(), 0);
  EXPECT_EQ(HighestRate(5, [](double) { return absl::InternalError("broken"); }).status().message(),
            "broken");
}

TEST(OpenLoop, IsReportedWithItsSeedAndPercentiles) {
  Report report;
  report.open = OpenLoopOptions{.rate = 2, .seconds = 10, .seed = 42, .goal = 1.5};
  report.clients = 64;
  report.open_rows.push_back(Waited({1, 2, 3, 4}));
  report.open_rows.back().image = "frame.fits";
  report.open_rows.back().rate = 2;
  report.best_rates.push_back({"frame.fits", Way::kPath, 1.75});
  EXPECT_THAT(FormatReport(report),
              AllOf(HasSubstr("--seed 42"), HasSubstr("|      2000 | 4000 | 4000 |"),
                    HasSubstr("frame.fits by path: 99 % of the jobs within 1.5 s up to 1.75 jobs/s")));
  const nlohmann::ordered_json json = ToJson(report)["arrivals"];
  EXPECT_EQ(json["seed"], 42);
  EXPECT_EQ(json["rows"][0]["whole"]["p50"], 2);
  EXPECT_EQ(json["rows"][0]["jobs"][3]["whole"], 4);
  EXPECT_EQ(json["goal"]["highest_rates"][0]["rate"], 1.75);
}

TEST(OwnPsfFiles, AreReadableAllDifferentAndGoAway) {
  const TempFolder parent;
  const auto psf = std::make_shared<const Psf>(SmallPsf());
  std::set<std::string> hashes;
  {
    const auto files = OwnPsfFiles::Make(psf, parent.path());
    ASSERT_TRUE(files.ok()) << files.status();
    struct stat info = {};
    ASSERT_EQ(stat((*files)->folder().c_str(), &info), 0);
    EXPECT_EQ(info.st_mode & 0777, 0755u);
    for (int again = 0; again < 2; ++again) {
      const auto paths = (*files)->Write(3);
      ASSERT_TRUE(paths.ok()) << paths.status();
      ASSERT_THAT(*paths, SizeIs(3));
      for (const std::string& path : *paths) {
        const absl::StatusOr<Source> source = Source::FromFile(path);
        ASSERT_TRUE(source.ok()) << source.status();
        hashes.insert(source->content_hash());
        const absl::StatusOr<Psf> copy = ReadPsf(*source);
        ASSERT_TRUE(copy.ok()) << copy.status();
        EXPECT_NEAR(copy->traces.x.coeff(4, 0), psf->traces.x.coeff(4, 0), 1e-6);
      }
    }
    ASSERT_TRUE((*files)->Write(1).ok());
    const std::filesystem::directory_iterator left((*files)->folder());
    EXPECT_EQ(std::distance(begin(left), end(left)), 1);
  }
  EXPECT_THAT(hashes, SizeIs(6));
  EXPECT_THAT(parent.Entries(), ElementsAre());
}

TEST(OwnPsfFiles, NameAFolderThatIsNotThere) {
  EXPECT_THAT(OwnPsfFiles::Make(std::make_shared<const Psf>(SmallPsf()), "/nowhere/psfs").status(),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("/nowhere/psfs")));
}

TEST(DecodeCeiling, NamesTheFileThatCannotBeRead) {
  const TempFolder folder;
  std::stop_source cancel;
  EXPECT_THAT(MeasureDecoding(folder / "none.fits", 2, 0, cancel.get_token()).status().message(),
              HasSubstr(folder / "none.fits"));
  spexd::testing::WriteBytes(folder / "text.fits", "not a FITS file");
  EXPECT_THAT(MeasureDecoding(folder / "text.fits", 2, 0, cancel.get_token()).status(),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(folder / "text.fits")));
}

TEST(LoadReport, ShowsMediansAndTheShareOfTheCeiling) {
  FakeConnection connection(std::vector<Script>(3, Good()));
  std::stop_source cancel;
  Report report;
  absl::StatusOr<Row> row = TimeJobs({&connection}, Jobs(3), Way::kPath, cancel.get_token());
  ASSERT_TRUE(row.ok()) << row.status();
  row->seconds = 1.5;
  report.rows.push_back(*row);
  DecodeCeiling ceiling;
  ceiling.image = "frame.fits";
  ceiling.threads = 16;
  ceiling.rate = 4;
  report.ceilings.push_back(ceiling);
  EXPECT_THAT(FormatReport(report),
              AllOf(HasSubstr("16 files at once"), HasSubstr(" 2.00 |        50 % |"), HasSubstr("normal"),
                    // Columns: receive, queue, decode, prepare, extract. A run longer than its job has no
                    // rest.
                    HasSubstr("|     500 |   250 |   2000 |    1000 |    7000 | 0.000 |")));
  const nlohmann::ordered_json json = ToJson(report);
  EXPECT_EQ(json["rows"][0]["frames_per_second"], 2);
  EXPECT_EQ(json["rows"][0]["jobs"][0]["stages"]["decode"], 2);
  EXPECT_EQ(json["decoding"][0]["threads"], 16);
}

}  // namespace
}  // namespace spexd::load
