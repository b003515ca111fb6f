// Reports of spex night: the page, the picture, and metrics while it runs.
#include <chrono>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "client/cli/night/night_metrics.h"
#include "client/cli/terminal/exit_code.h"
#include "tests/client/support/small_frame.h"
#include "tests/support/build_paths.h"
#include "tests/support/eventually.h"
#include "tests/support/matchers.h"
#include "tests/support/process.h"
#include "tests/support/run_command.h"

namespace spexd::testing {
namespace {

using cli::BatchResult;
using nlohmann::json;
using State = BatchResult::State;

BatchResult Written(const std::string& camera, double written, double chi2pix) {
  const json shift = {{"status", "ok"}, {"mean", 0.25}};
  return {.state = State::kWritten,
          .image = "a.fits",
          .record = {{"camera", camera},
                     {"written", written},
                     {"chi2pix", chi2pix},
                     {"snr", 5.5},
                     {"bins", 200},
                     {"masked_bins", 50},
                     {"bad_fit", chi2pix > 2},
                     {"seconds", 2.0},
                     {"queue_seconds", 0.5},
                     {"trace_shifts", {{"x", shift}, {"y", {{"status", "relative"}, {"mean", 0.1}}}}},
                     {"products",
                      {{"sky", {{"level", 60}}},
                       {"velocities", {{"error", "no templates"}}},
                       {"redshifts", {{"targets", 40}, {"accepted", 10}}}}}}};
}

TEST(NightMetrics, AreOfTheLastFrameAndTheMedianOfEachCamera) {
  cli::NightNumbers numbers(7, 1000);
  numbers.Add(Written("r0", 1100, 0.75));
  numbers.Add(Written("r0", 1300, 3.0));
  numbers.Add(Written("r0", 1200, 1.0));
  numbers.Add(Written("b0", 1250, 0.5));
  numbers.Add({.state = State::kFailed, .image = "b.fits"});
  numbers.Add({.state = State::kWritten, .record = {{"products", json::object()}}});  // an exposure
  const std::string text = numbers.Text(true);
  for (const char* line :
       {"running 1", "listed_frames 7", "start_timestamp_seconds 1000",
        "frames{camera=\"r0\",state=\"written\"} 3", "frames{camera=\"r0\",state=\"failed\"} 0",
        "frames{camera=\"unknown\",state=\"failed\"} 1", "exposures{state=\"written\"} 1",
        "last_frame_timestamp_seconds{camera=\"r0\"} 1300", "bad_fits{camera=\"r0\"} 1",
        "failed_products{camera=\"r0\"} 3", "chi2pix{camera=\"r0\"} 3", "chi2pix_median{camera=\"r0\"} 1",
        "chi2pix{camera=\"b0\"} 0.5", "snr{camera=\"r0\"} 5.5", "sky_level{camera=\"r0\"} 60",
        "masked_ratio{camera=\"r0\"} 0.25", "trace_shift_x_pixels{camera=\"r0\"} 0.25",
        "redshift_ratio_median{camera=\"b0\"} 0.25", "frame_seconds{camera=\"r0\"} 2.5"}) {
    EXPECT_THAT(text, HasSubstr("\nspexd_night_" + std::string(line) + "\n"));
  }
  EXPECT_THAT(text, Not(HasSubstr("trace_shift_y")));  // its mean is unknown
  EXPECT_THAT(numbers.Text(false), HasSubstr("\nspexd_night_running 0\n"));
}

TEST(NightMetrics, AreThoseThatAlertsAskFor) {
  cli::NightNumbers numbers(1, 0);
  numbers.Add(Written("r0", 1, 1));
  const std::string text = numbers.Text(true), alerts = ReadBytes(SourceFolder() + "/deploy/alerts.yml");
  int asked = 0;
  for (size_t at = alerts.find("spexd_night_"); at != std::string::npos;
       at = alerts.find("spexd_night_", at + 1)) {
    const size_t end = alerts.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789_", at);
    EXPECT_THAT(text, HasSubstr("# TYPE " + alerts.substr(at, end - at) + " "));
    ++asked;
  }
  EXPECT_GT(asked, 4);
}

TEST(NightMetrics, HaveNoMoreCamerasThanTheirLimit) {
  cli::NightNumbers numbers(0, 0);
  for (int k = 0; k < 300; ++k) numbers.Add(Written("camera" + std::to_string(k), k, 1));
  const auto limit = static_cast<int>(cli::NightNumbers::kMaxCameras);
  EXPECT_THAT(numbers.Text(true), HasSubstr("spexd_night_frames{camera=\"other\",state=\"written\"} " +
                                            std::to_string(300 - limit)));
}

TEST(NightMetrics, BearRecordsOfAnySort) {
  cli::NightNumbers numbers(0, 0);
  for (const json& record :
       {json(), json(3), json{{"camera", 3}, {"products", 4}, {"trace_shifts", "x"}, {"bins", "many"}},
        json{{"products", {{"sky", nullptr}, {"redshifts", {{"targets", 0}, {"accepted", 0}}}}}}}) {
    numbers.Add({.state = State::kSkipped, .image = "a.fits", .record = record});
  }
  EXPECT_THAT(numbers.Text(true), HasSubstr("spexd_night_frames{camera=\"unknown\",state=\"skipped\"} 4\n"));
}

TEST(NightMetrics, AreInTheFileSoonAfterEachResultAndAtTheEnd) {
  const TempFolder folder;
  const std::string path = folder / "night.prom";
  cli::NightMetricsFile file(path, 3, std::chrono::milliseconds(1));
  ASSERT_TRUE(file.Begin().ok());
  EXPECT_THAT(ReadBytes(path), HasSubstr("spexd_night_running 1\n"));
  for (int k = 1; k <= 3; ++k) {
    file.Add(Written("r0", k, 1));
    const std::string line = "state=\"written\"} " + std::to_string(k) + "\n";
    EXPECT_TRUE(Eventually([&] { return ReadBytes(path).find(line) != std::string::npos; })) << k;
  }
  ASSERT_TRUE(file.End().ok());
  EXPECT_THAT(ReadBytes(path), HasSubstr("spexd_night_running 0\n"));
  EXPECT_THAT(folder.Entries(), ElementsAre("night.prom"));
}

TEST(NightMetrics, TellThatTheFileCannotBeWritten) {
  const TempFolder folder;
  EXPECT_FALSE(cli::NightMetricsFile(folder / "none/night.prom", 1).Begin().ok());
}

TEST(NightReport, IsWrittenOfANightWithAFailure) {
  const TempFolder folder;
  const SmallFrame frame;
  WriteBytes(folder / "night.txt", "image psf output expid\n" + frame.image() + " " + frame.psf() + " " +
                                       (folder / "out/1.fits") + " 51060\n" + (folder / "none-b0.fits") +
                                       " " + frame.psf() + " " + (folder / "out/2.fits") + " 51060\n");
  const RunResult run =
      Spex({"night", folder / "night.txt", "-n", "5", "--device", "cpu", "--report", folder / "night.html",
            "--plot", folder / "night.png", "--metrics-file", folder / "night.prom"});
  EXPECT_EQ(run.code, cli::kUsage) << run.output;
  EXPECT_THAT(run.output, AllOf(HasSubstr("not made"), HasSubstr("S/N")));
  EXPECT_THAT(ReadBytes(folder / "night.html"),
              AllOf(HasSubstr("b0 51060 failed: No such file or directory."), HasSubstr("<div id=panels>")));
  EXPECT_THAT(ReadBytes(folder / "night.png"), StartsWith("\x89PNG"));
  const std::string metrics = ReadBytes(folder / "night.prom");
  EXPECT_THAT(metrics, AllOf(HasSubstr("spexd_night_running 0\n"),
                             HasSubstr("spexd_night_frames{camera=\"r0\",state=\"written\"} 1\n"),
                             HasSubstr("spexd_night_frames{camera=\"unknown\",state=\"failed\"} 1\n")));
  EXPECT_THAT(folder.Entries(), ElementsAre("night.html", "night.png", "night.prom", "night.txt", "out"));
  if (RunCommand({"promtool", "--version"}).exit_code != 0) GTEST_SKIP() << "promtool is not installed";
  EXPECT_THAT(RunCommand({"sh", "-c", "promtool check metrics <" + (folder / "night.prom")}), ExitsWith(0));
}

TEST(NightReport, NeedsNoMatplotlib) {
  const TempFolder folder;
  const SmallFrame frame;
  WriteBytes(folder / "matplotlib.py", "raise ModuleNotFoundError(\"none\", name=\"matplotlib\")\n");
  WriteBytes(folder / "night.txt",
             "image psf output\n" + frame.image() + " " + frame.psf() + " " + (folder / "out/1.fits") + "\n");
  ProcessOptions without;
  without.environment = {"PYTHONPATH=" + folder.path()};
  EXPECT_THAT(
      Spex({"night", folder / "night.txt", "-n", "5", "--device", "cpu", "--report", folder / "night.html"},
           without),
      ExitsWith(0, HasSubstr("Wrote ")));
  EXPECT_THAT(ReadBytes(folder / "night.html"), HasSubstr("Nothing: no failures"));
}

}  // namespace
}  // namespace spexd::testing
