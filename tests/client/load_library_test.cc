// The parts of spex load: jobs on scripted servers, PSF files, decoding.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <set>

#include "client/load/ceiling.h"
#include "client/load/own_psf_files.h"
#include "client/load/report.h"
#include "client/load/row.h"
#include "core/fits/readers.h"
#include "core/simulate/simulator.h"
#include "tests/client/fake_connection.h"
#include "tests/support/temp_folder.h"

namespace spexd::load {
namespace {

using spexd::testing::FakeConnection;
using spexd::testing::GoodEvents;
using spexd::testing::Script;
using spexd::testing::TempFolder;
using std::chrono::milliseconds;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::SizeIs;

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
  const absl::StatusOr<Row> row = TimeJobs({&connection}, Jobs(1), Way::kPath, cancel.get_token());
  EXPECT_EQ(row.status().code(), absl::StatusCode::kInternal);
  EXPECT_THAT(row.status().message(), HasSubstr("frame.fits: 1 bundles failed: bundle 1: singular"));
}

TEST(LoadRow, StopsWhenItIsInterrupted) {
  FakeConnection connection(std::vector<Script>(5, Good()));
  std::stop_source cancel;
  cancel.request_stop();
  const absl::StatusOr<Row> row = TimeJobs({&connection}, Jobs(5), Way::kPath, cancel.get_token());
  EXPECT_EQ(row.status().code(), absl::StatusCode::kCancelled);
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
        EXPECT_NEAR(copy->x.coeff(4, 0), psf->x.coeff(4, 0), 1e-6);
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
  const auto files = OwnPsfFiles::Make(std::make_shared<const Psf>(SmallPsf()), "/nowhere/psfs");
  EXPECT_EQ(files.status().code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(files.status().message(), HasSubstr("/nowhere/psfs"));
}

TEST(DecodeCeiling, NamesTheFileThatCannotBeRead) {
  const TempFolder folder;
  std::stop_source cancel;
  EXPECT_THAT(MeasureDecoding(folder / "none.fits", 2, 0, cancel.get_token()).status().message(),
              HasSubstr(folder / "none.fits"));
  spexd::testing::WriteBytes(folder / "text.fits", "not a FITS file");
  const absl::Status status = MeasureDecoding(folder / "text.fits", 2, 0, cancel.get_token()).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(status.message(), HasSubstr(folder / "text.fits"));
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
                    // receive, queue, decode, prepare, extract; a run longer than its job has no rest
                    HasSubstr("|     500 |   250 |   2000 |    1000 |    7000 | 0.000 |")));
  const nlohmann::ordered_json json = ToJson(report);
  EXPECT_EQ(json["rows"][0]["frames_per_second"], 2);
  EXPECT_EQ(json["rows"][0]["jobs"][0]["stages"]["decode"], 2);
  EXPECT_EQ(json["decoding"][0]["threads"], 16);
}

}  // namespace
}  // namespace spexd::load
