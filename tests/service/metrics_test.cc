// The metrics as Prometheus and its rules use them; part of service_engine_test.
#include "server/operation/metrics.h"

#include <iterator>
#include <map>
#include <regex>
#include <set>

#include "absl/strings/match.h"
#include "absl/strings/str_split.h"
#include "server/base/retry.h"
#include "tests/loader/modules.h"
#include "tests/service/support/harness.h"
#include "tests/support/build_paths.h"
#include "tests/support/matchers.h"
#include "tests/support/run_command.h"

namespace spexd::testing {
namespace {

class MetricsTest : public ServiceTest {
 protected:
  MetricsTest() {
    DeviceStatus device;
    device.name = "Fake GPU";
    engine_->Set([&](auto& b) { b.devices = {device}; });
  }
  // Returns the metrics of a server on a machine whose driver reports how busy its devices are.
  std::string WithDeviceUsage() {
    const FakeEngine engine(engine_);
    const auto monitor = DeviceMonitor::Load(FakeModule("fake_driver"), FakeModule("fake_driver"));
    Metrics::Sources sources;
    sources.engine = &engine;
    sources.monitor = monitor.get();
    return Metrics().Text(sources);
  }
  using Labels = std::set<std::string>;
  // Returns the sets of labels of each metric's series, without `le` of histograms. One set: all series have
  // the same labels.
  static std::map<std::string, std::set<Labels>> LabelsIn(const std::string& scrape) {
    std::map<std::string, std::set<Labels>> metrics;
    const std::regex label("[{,]([a-z_]+)=\"");
    std::string metric;
    for (const std::string& line : std::vector<std::string>(absl::StrSplit(scrape, '\n'))) {
      const std::vector<std::string> words = absl::StrSplit(line, ' ');
      if (words.size() == 4 && words[0] == "#" && words[1] == "TYPE") metric = words[2];
      if (line.empty() || line[0] == '#') continue;
      Labels labels = Matches(line, label);
      labels.erase("le");
      metrics[metric].insert(labels);
    }
    return metrics;
  }
  // Returns the first group of each match.
  static std::set<std::string> Matches(const std::string& text, const std::regex& pattern) {
    std::set<std::string> found;
    for (std::sregex_iterator at(text.begin(), text.end(), pattern), end; at != end; ++at)
      found.insert((*at)[1]);
    return found;
  }
  // Returns the page's text from the first occurrence of `begin` to the next empty line.
  static std::string PartOfThePage(const std::string& begin) {
    const std::string page = ReadBytes(SourceFolder() + "/docs/spexd.md");
    const size_t at = page.find(begin);
    EXPECT_NE(at, std::string::npos) << begin;
    return at == std::string::npos ? "" : page.substr(at, page.find("\n\n", at) - at);
  }
};

TEST_F(MetricsTest, AndTheirLabelsAreThoseDocumented) {
  Start();
  ASSERT_TRUE(Extract(PathHeader()).status.ok());
  std::map<std::string, std::set<Labels>> shown = LabelsIn(Get("/metrics").second), documented;
  for (const auto& [metric, labels] : LabelsIn(WithDeviceUsage()))
    shown[metric].insert(labels.begin(), labels.end());
  const std::regex name("`([a-z0-9_]+)`");
  const std::string table = PartOfThePage("\n| metric | labels | ");
  for (const std::string& row : std::vector<std::string>(absl::StrSplit(table, '\n'))) {
    const std::vector<std::string> cells = absl::StrSplit(row, '|');
    if (cells.size() < 4) continue;
    for (const std::string& metric : Matches(cells[1], name))
      documented[metric].insert(Matches(cells[2], name));
  }
  EXPECT_GT(documented.size(), 30u);
  EXPECT_EQ(documented, shown);
}

TEST_F(MetricsTest, NameTheReasonsOfRefusalsThatAreDocumented) {
  Start();
  const std::set<std::string> shown =
      Matches(Get("/metrics").second, std::regex("spexd_rejections_total\\{reason=\"([a-z_]+)\"\\}"));
  EXPECT_GT(shown.size(), 10u);
  EXPECT_EQ(Matches(PartOfThePage("\n| reason | "), std::regex("\n\\| `([a-z_]+)` ")), shown);
}

TEST_F(MetricsTest, HaveEverySeriesOfJobsAtZeroFromTheStart) {
  Start();
  for (int code = 0; code <= static_cast<int>(absl::StatusCode::kUnauthenticated); ++code) {
    const std::string outcome = CodeLabel(static_cast<absl::StatusCode>(code));
    EXPECT_EQ(Metric("spexd_jobs_total{outcome=\"" + outcome + "\"}"), 0) << outcome;
  }
  for (const char* outcome : {"ok", "stopped", "failed"}) {
    EXPECT_EQ(Metric("spexd_job_duration_seconds_count{outcome=\"" + std::string(outcome) + "\"}"), 0)
        << outcome;
  }
}

// Checks each `name{label="value"}` of the alerts, also with `=~`, `!=` and `!~` and with "value|value".
// Prometheus adds the label `job`. Of the named series, counters must be at 0, and gauges must have a value.
// Values that a selector excludes must exist as well, otherwise it would exclude nothing.
TEST_F(MetricsTest, HaveEverySeriesThatAlertsNameFromTheStart) {
  Start();
  const std::string scrape = Get("/metrics").second;
  const std::string alerts = ReadBytes(SourceFolder() + "/deploy/alerts.yml");
  const std::regex brace("spexd_[a-z_]+\\{");
  const std::regex selector("(spexd_[a-z_]+)\\{([a-z_]+)(=|=~|!=|!~)\"([^\"]*)\"\\}");
  int checked = 0;
  for (std::sregex_iterator at(alerts.begin(), alerts.end(), selector), end; at != end; ++at) {
    const std::string name = (*at)[1];
    ++checked;
    if ((*at)[2] == "job") {
      EXPECT_THAT(scrape, ContainsRegex("\n" + name + (absl::EndsWith(name, "_total") ? " 0\n" : "[ {]")));
      continue;
    }
    for (const std::string& value : std::vector<std::string>(absl::StrSplit((*at)[4].str(), '|'))) {
      EXPECT_THAT(scrape, ContainsRegex(absl::StrCat("\n", name, "\\{([^}]*,)?", (*at)[2].str(), "=\"", value,
                                                     "\"(,[^}]*)?\\} 0\n")));
    }
  }
  EXPECT_GE(checked, 11);
  EXPECT_EQ(checked,
            std::distance(std::sregex_iterator(alerts.begin(), alerts.end(), brace), std::sregex_iterator()))
      << "this test does not read some selectors";
}

TEST_F(MetricsTest, CountHowLongJobsTook) {
  Start();
  ASSERT_TRUE(Extract(PathHeader()).status.ok());
  engine_->Set([](auto& b) { b.extract_error = absl::InternalError("broken"); });
  EXPECT_FALSE(Extract(PathHeader()).status.ok());
  EXPECT_EQ(Metric("spexd_job_duration_seconds_count{outcome=\"ok\"}"), 1);
  EXPECT_EQ(Metric("spexd_job_duration_seconds_count{outcome=\"failed\"}"), 1);
  EXPECT_GT(Metric("spexd_job_duration_seconds_sum{outcome=\"ok\"}"), 0);
  EXPECT_EQ(Metric("spexd_jobs_total{outcome=\"internal\"}"), 1);
}

TEST_F(MetricsTest, TellOfTheProcess) {
  Start();
  const double descriptors = Metric("process_open_fds");
  EXPECT_GT(descriptors, 3);
  const auto channel = NewChannel();
  ASSERT_TRUE(channel->WaitForConnected(std::chrono::system_clock::now() + std::chrono::minutes(1)));
  EXPECT_GE(Metric("process_open_fds"), descriptors + 2);  // both ends are in this process
  EXPECT_GE(Metric("process_max_fds"), Metric("process_open_fds"));
  EXPECT_GT(Metric("process_threads"), 4);
  const double cpu = Metric("process_cpu_seconds_total");
  EXPECT_GT(cpu, 0);
  EXPECT_TRUE(Eventually([&] { return Metric("process_cpu_seconds_total") > cpu; }));
}

TEST_F(MetricsTest, TellHowBusyDevicesAre) {
  const std::string text = WithDeviceUsage();
  EXPECT_THAT(text, HasSubstr("spexd_device_utilization_ratio{device=\"0\",name=\"Fake GPU\"} 0.75"));
  EXPECT_THAT(text, HasSubstr("spexd_device_used_bytes{device=\"0\",name=\"Fake GPU\"} 2000"));
}

TEST_F(MetricsTest, AreGoodInTheEyesOfPromtool) {
  if (RunCommand({"promtool", "--version"}).exit_code != 0) GTEST_SKIP() << "promtool is not installed";
  Start();
  ASSERT_TRUE(Extract(PathHeader()).status.ok());
  for (const std::string& scrape : {Get("/metrics").second, WithDeviceUsage()}) {
    WriteText(folder_ / "scrape", scrape);
    EXPECT_THAT(RunCommand({"sh", "-c", "promtool check metrics <" + (folder_ / "scrape")}), ExitsWith(0));
  }
}

TEST(AlertsTest, AreGoodInTheEyesOfPromtoolAndFireWhenTheyShould) {
  if (RunCommand({"promtool", "--version"}).exit_code != 0) GTEST_SKIP() << "promtool is not installed";
  const std::string deploy = SourceFolder() + "/deploy/";
  const CommandResult rules = RunCommand({"promtool", "check", "rules", deploy + "alerts.yml"});
  EXPECT_EQ(rules.exit_code, 0) << rules.output;
  EXPECT_THAT(RunCommand({"promtool", "test", "rules", deploy + "alerts_test.yml"}), ExitsWith(0));
}

}  // namespace
}  // namespace spexd::testing
