// The operator's page: what it counts, what it shows, and how a browser shows it.
#include "server/status/status_page.h"

#include <filesystem>
#include <regex>

#include "server/server.h"
#include "server/status/human_units.h"
#include "server/status/job_board.h"
#include "tests/service/support/harness.h"
#include "tests/support/build_paths.h"
#include "tests/support/matchers.h"
#include "tests/support/run_command.h"

namespace spexd::testing {
namespace {

constexpr int kSkipped = 77;  // exit code of check_status_page.py without Chromium
constexpr char kHostile[] = "/data/<script>alert('x')</script>\"onload=\"&.fits";

TEST(HumanUnitsTest, RoundsToWhatPeopleRead) {
  EXPECT_EQ(HumanBytes(0), "0 B");
  EXPECT_EQ(HumanBytes(999), "999 B");
  EXPECT_EQ(HumanBytes(1000), "1.0 kB");
  EXPECT_EQ(HumanBytes(999'999), "1.0 MB");
  EXPECT_EQ(HumanBytes(1'800'000'000), "1.8 GB");
  EXPECT_EQ(HumanBytes(141'000'000'000), "141 GB");
  EXPECT_EQ(HumanSeconds(0.0004), "0.4 ms");
  EXPECT_EQ(HumanSeconds(0.0351), "35 ms");
  EXPECT_EQ(HumanSeconds(3.21), "3.2 s");
  EXPECT_EQ(HumanSeconds(246), "4.1 min");
  EXPECT_EQ(HumanSeconds(8280), "2.3 h");
  EXPECT_EQ(HumanSeconds(1'036'800), "12.0 days");
  EXPECT_EQ(HumanAge(0.2), "just now");
  EXPECT_EQ(HumanAge(59.9), "59 s ago");
  EXPECT_EQ(HumanAge(185), "3 min ago");
  EXPECT_EQ(HumanAge(7300), "2 h ago");
  EXPECT_EQ(HumanCount(999), "999");
  EXPECT_EQ(HumanCount(1157915), "1,157,915");
}

class JobBoardTest : public ::testing::Test {
 protected:
  void Pass(std::chrono::seconds time) { now_ += time; }
  void EndJob(const std::string& id, absl::StatusCode code = absl::StatusCode::kOk) {
    JobBoard::Row row(&board_, id, "preproc.fits");
    row.End({.code = code});
  }
  JobBoard::Clock::time_point now_{std::chrono::hours(1000)};
  JobBoard board_{[this] { return now_; }};
};

TEST_F(JobBoardTest, ShowsAJobFromItsAdmissionToItsEnd) {
  JobBoard::Row row(&board_, "job-1", "preproc.fits");
  Pass(std::chrono::seconds(5));
  EXPECT_TRUE(board_.view().under_way.at(0).waits());
  EXPECT_EQ(board_.view().now - board_.view().under_way[0].since, std::chrono::seconds(5));
  row.Enter("extracting", 3, 20);
  EXPECT_FALSE(board_.view().under_way.at(0).waits());
  EXPECT_EQ(board_.view().under_way.at(0).bundles_done, 3);
  row.End({.seconds = 7, .spectra = 500});
  EXPECT_TRUE(board_.view().under_way.empty());
  EXPECT_EQ(board_.view().ended.at(0).id, "job-1");
  EXPECT_EQ(board_.view().ended.at(0).outcome.spectra, 500);
}

TEST_F(JobBoardTest, KeepsOnlyTheLastJobsThatEnded) {
  for (int k = 0; k < 200; ++k) EndJob(std::to_string(k));
  const JobBoard::View view = board_.view();
  ASSERT_EQ(view.ended.size(), JobBoard::kEnded);
  EXPECT_EQ(view.ended.front().id, "199");
  EXPECT_EQ(view.ended.back().id, "150");
  EXPECT_EQ(view.jobs_ok, 200);
}

TEST_F(JobBoardTest, ForgetsWhatIsOlderThanAnHour) {
  board_.CountSpectra(100);
  EndJob("1", absl::StatusCode::kInternal);
  Pass(std::chrono::minutes(59));
  board_.CountSpectra(7);
  board_.CountSpectra(3);
  EXPECT_EQ(board_.view().spectra.front(), 100);
  EXPECT_EQ(board_.view().spectra.back(), 10);
  EXPECT_EQ(board_.view().jobs_failed, 1);
  Pass(std::chrono::minutes(1));
  EXPECT_EQ(board_.view().spectra.front(), 0);
  EXPECT_EQ(board_.view().spectra[58], 10);
  EXPECT_EQ(board_.view().jobs_failed, 0);
  Pass(std::chrono::hours(48));
  board_.CountSpectra(1);
  EXPECT_EQ(board_.view().spectra[58], 0);
}

TEST_F(JobBoardTest, CutsLongMessages) {
  JobBoard::Row(&board_, "1", "")
      .End({.code = absl::StatusCode::kInternal, .message = std::string(5000, 'x')});
  EXPECT_LT(board_.view().ended.at(0).outcome.message.size(), 400u);
}

class StatusPageTest : public ServiceTest {
 protected:
  // Checks the page's HTML and returns its texts, one per line.
  std::string TextsOf(const std::string& page) {
    WriteText(folder_ / "page.html", page);
    const CommandResult checked =
        RunPython({SourceFolder() + "/tests/service/check_page.py", folder_ / "page.html"});
    EXPECT_EQ(checked.exit_code, 0) << checked.output;
    return checked.output;
  }
  // Starts a job that waits at the engine's gate after one of its bundles.
  std::unique_ptr<Stream> BeginJob(v1::Extraction::Stub* stub, grpc::ClientContext* context,
                                   const v1::JobHeader& header) {
    engine_->Set([](auto& b) {
      b.gate_closed = true;
      b.open_bundles = 1;
    });
    auto stream = stub->Extract(context);
    SendHeader(stream.get(), header);
    stream->WritesDone();
    EXPECT_TRUE(engine_->WaitUntil([](const auto& seen) { return seen.at_gate == 1; }));
    return stream;
  }
};

TEST_F(StatusPageTest, ShowsJobsUnderWayAndThoseThatEnded) {
  Start();
  EXPECT_TRUE(Extract(PathHeader()).status.ok());
  v1::JobHeader wrong = PathHeader();
  wrong.mutable_grid()->set_first(100);
  wrong.mutable_grid()->set_step(1);
  wrong.mutable_grid()->set_count(10);
  EXPECT_FALSE(Extract(wrong).status.ok());
  grpc::ClientContext context;
  const auto stub = NewStub();
  const auto stream = BeginJob(stub.get(), &context, PathHeader());
  v1::ExtractEvent event;
  while (stream->Read(&event) && !event.has_bundle()) {
  }
  ASSERT_TRUE(Eventually([&] { return Get("/").second.find("extracting 1/3") != std::string::npos; }));
  const std::string texts = TextsOf(Get("/").second);
  EXPECT_THAT(texts,
              AllOf(HasSubstr("serving"), HasSubstr("running, of 2"), HasSubstr("done, 1 failed, last hour"),
                    HasSubstr("preproc.fits"), HasSubstr("10 spectra"), HasSubstr("invalid_argument"),
                    HasSubstr("exceeds the PSF's domain"), HasSubstr("psf.fits"),
                    HasSubstr("10 fibres, 1 grid, in use")));
  engine_->Set([](auto& b) { b.gate_closed = false; });
  EXPECT_TRUE(Finish(stream.get(), &context).status.ok());
  EXPECT_THAT(TextsOf(Get("/").second), HasSubstr("None."));
}

TEST_F(StatusPageTest, ShowsAFailedDeviceAndFailedAndQueuedJobsPlainly) {
  options_.max_running_jobs = 1;
  options_.jobs_dir = folder_ / "jobs";
  engine_->Set([](auto& b) {
    b.info = {"cuda", "2 x Fake GPU", 8, 0};
    b.devices = {{.index = 0, .name = "Fake GPU", .memory_bytes = 8000, .health = absl::OkStatus()},
                 {.index = 2, .name = "Fake GPU", .memory_bytes = 8000, .health = absl::OkStatus()}};
  });
  Start();
  EXPECT_THAT(TextsOf(Get("/").second), Not(HasSubstr("failed\n")));

  engine_->Set([](auto& b) {
    b.devices[1].health = absl::UnavailableError("an illegal address in solve");
    b.extract_error = absl::UnavailableError("device 2 failed in solve");
  });
  EXPECT_FALSE(Extract(PathHeader()).status.ok());
  engine_->Set([](auto& b) { b.extract_error = absl::OkStatus(); });
  const auto running = HoldJobAtGate();
  ASSERT_NE(running, nullptr);
  grpc::ClientContext context;
  const auto stub = NewStub();
  const auto queued = stub->Extract(&context);
  SendHeader(queued.get(), PathHeader());
  queued->WritesDone();
  ASSERT_TRUE(Eventually([&] { return Get("/").second.find("<span>queued</span>") != std::string::npos; }));

  const std::string page = Get("/").second;
  EXPECT_THAT(page, AllOf(HasSubstr("<p class=\"bad\">1 of 2 devices failed</p>"),
                          HasSubstr("<span class=\"bad\">failed</span>"),
                          HasSubstr("<p class=\"bad\">an illegal address in solve</p>"),
                          HasSubstr("<span class=\"bad\">unavailable</span>"),
                          HasSubstr("<p class=\"bad\">device 2 failed in solve</p>")));
  EXPECT_THAT(TextsOf(page),
              AllOf(HasSubstr("serving\n"), HasSubstr("device 0, Fake GPU\n0 jobs"),
                    HasSubstr("device 2, Fake GPU\nfailed\nan illegal address in solve\n"),
                    HasSubstr("1\nrunning, of 1\n1\nwaiting, of "), HasSubstr("preproc.fits\nqueued\nfor "),
                    HasSubstr("0\ndone, 1 failed, last hour\n"), HasSubstr("preproc.fits\nunavailable\n"),
                    HasSubstr("device 2 failed in solve\n"), Not(HasSubstr("Detached"))));

  grpc::ClientContext submit;
  v1::SubmitReply reply;
  ASSERT_TRUE(
      SubmitJob(v1::Jobs::NewStub(NewChannel()).get(), &submit, Submission("night 7", PathHeader()), &reply)
          .ok());
  EXPECT_THAT(TextsOf(Get("/").second), HasSubstr("Detached jobs: 1 queued, 0 running\n"));

  EXPECT_TRUE(LetGo(running.get()).status.ok());
  EXPECT_TRUE(Finish(queued.get(), &context).status.ok());
}

TEST_F(StatusPageTest, EscapesWhatClientsAndDevicesAreCalled) {
  StatusPageContent content;
  content.status.set_version(kHostile);
  content.status.add_engines()->set_detail(kHostile);
  content.status.mutable_engines(0)->add_devices()->set_name(kHostile);
  content.status.add_psfs()->set_name(kHostile);
  content.address = content.not_ready = kHostile;
  content.jobs.under_way.push_back({.id = kHostile, .image = kHostile, .state = kHostile});
  content.jobs.ended.push_back({.id = kHostile,
                                .image = kHostile,
                                .outcome = {.code = absl::StatusCode::kInternal, .message = kHostile}});
  content.jobs.ended.back().outcome.stages = {{kHostile, 1}};
  const std::string page = StatusPage(content);
  EXPECT_THAT(page, Not(HasSubstr("<script")));
  EXPECT_THAT(page, Not(HasSubstr("\"onload")));
  EXPECT_THAT(TextsOf(page), HasSubstr(kHostile));
}

TEST_F(StatusPageTest, ShowsControlCharactersAsEscapes) {
  StatusPageContent content;
  content.jobs.ended.push_back({.id = "1",
                                .image = "a\xc2\x9b"
                                         "2Jb.fits",
                                .outcome = {.message = "\x1b[2J\xe2\x80\xae"}});
  const std::string page = StatusPage(content);
  EXPECT_THAT(page, Not(HasSubstr("\xc2\x9b")));
  EXPECT_THAT(TextsOf(page), HasSubstr("a\\302\\2332Jb.fits"));
}

TEST_F(StatusPageTest, HasBarsOfStagesAndOfThroughput) {
  StatusPageContent content;
  content.jobs.spectra[59] = 500;
  content.jobs.spectra[10] = 250;
  // Two seconds: half in the queue, a quarter preparing, a quarter extracting on several threads.
  content.jobs.ended.push_back(
      {.id = "1",
       .image = "a.fits",
       .outcome = {.seconds = 2,
                   .engine_seconds = 1,
                   .stages = {{"queue", 1}, {"prepare", 0.5}, {"spots", 3}, {"solve", 1}}}});
  const std::string page = StatusPage(content);
  EXPECT_THAT(page, HasSubstr("x=\"590\" y=\"2.0\" height=\"98.0\"><title>this minute: 500"));
  EXPECT_THAT(page, HasSubstr("x=\"100\" y=\"51.0\" height=\"49.0\"><title>49 min ago: 250"));
  EXPECT_THAT(page, HasSubstr("<i class=\"queue\" style=\"width:50.00%\" title=\"queue 1.0 s\">"));
  EXPECT_THAT(page, HasSubstr("<i class=\"prepare\" style=\"width:25.00%\" title=\"prepare 500 ms\">"));
  EXPECT_THAT(page, HasSubstr("<i class=\"spots\" style=\"width:18.75%\" title=\"spots 3.0 s\">"));
  EXPECT_THAT(page, HasSubstr("<i class=\"solve\" style=\"width:6.25%\" title=\"solve 1.0 s\">"));
}

TEST_F(StatusPageTest, EveryStageHasAColourAndAPlaceInTheLegend) {
  Start();
  EXPECT_TRUE(Extract(PathHeader()).status.ok());
  const std::string page = Get("/").second, metrics = Get("/metrics").second;
  const std::regex series("spexd_stage_duration_seconds_count\\{stage=\"([a-z]+)\"\\}");
  int stages = 0;
  for (std::sregex_iterator at(metrics.begin(), metrics.end(), series), end; at != end; ++at, ++stages) {
    const std::string stage = (*at)[1];
    EXPECT_THAT(page, HasSubstr("." + stage + "{background:"));
    EXPECT_THAT(page, HasSubstr("<i class=\"" + stage + "\"></i>" + stage + "</span>"));
  }
  EXPECT_GT(stages, 10);
}

TEST_F(StatusPageTest, FitsAPhoneAndADeskWithJobsRunningInChromium) {
  Start();
  const std::string image = folder_ / "a-name-of-an-image-that-is-so-long-that-no-phone-could-show-it.fits";
  std::filesystem::copy_file(folder_ / "preproc.fits", image);
  v1::JobHeader header = PathHeader();
  header.mutable_image()->set_path(image);
  EXPECT_TRUE(Extract(header).status.ok());
  grpc::ClientContext context;
  const auto stub = NewStub();
  const auto stream = BeginJob(stub.get(), &context, header);
  ASSERT_TRUE(Eventually([&] { return Get("/").second.find("extracting 1/3") != std::string::npos; }));
  const CommandResult shown = RunPython({SourceFolder() + "/tests/service/check_status_page.py",
                                         "http://127.0.0.1:" + std::to_string(server_->http_port()) + "/",
                                         BuildFolder() + "/screenshots"});
  engine_->Set([](auto& b) { b.gate_closed = false; });
  EXPECT_TRUE(Finish(stream.get(), &context).status.ok());
  if (shown.exit_code == kSkipped) GTEST_SKIP() << shown.output;
  EXPECT_EQ(shown.exit_code, 0) << shown.output;
}

}  // namespace
}  // namespace spexd::testing
