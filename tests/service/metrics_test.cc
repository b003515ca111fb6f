// The metrics as Prometheus and its rules use them: part of service_engine_test.
#include "server/operation/metrics.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <regex>
#include <set>

#include "absl/strings/match.h"
#include "absl/strings/str_split.h"
#include "server/base/retry.h"
#include "tests/loader/modules.h"
#include "tests/service/support/harness.h"
#include "tests/support/run_command.h"

namespace spexd::testing {
namespace {

using ::testing::ContainsRegex;
using ::testing::HasSubstr;

class MetricsTest : public ServiceTest {
 protected:
  MetricsTest() {
    DeviceStatus device;
    device.name = "Fake GPU";
    engine_->Set([&](auto& b) { b.devices = {device}; });
  }
  // What a server shows on a machine whose driver tells how busy its devices are.
  std::string WithDeviceUsage() {
    const FakeEngine engine(engine_);
    const auto monitor = DeviceMonitor::Load(FakeModule("fake_driver"), FakeModule("fake_driver"));
    Metrics::Sources sources;
    sources.engine = &engine;
    sources.monitor = monitor.get();
    return Metrics().Text(sources);
  }
  static std::set<std::string> NamesIn(const std::string& scrape) {
    std::set<std::string> names;
    for (absl::string_view line : absl::StrSplit(scrape, '\n')) {
      const std::vector<std::string> words = absl::StrSplit(line, ' ');
      if (words.size() == 4 && words[0] == "#" && words[1] == "TYPE") names.insert(words[2]);
    }
    return names;
  }
};

TEST_F(MetricsTest, AreThoseOfTheDocumentation) {
  Start();
  ASSERT_TRUE(Extract(PathHeader()).status.ok());
  std::set<std::string> shown = NamesIn(Get("/metrics").second);
  shown.merge(NamesIn(WithDeviceUsage()));
  std::set<std::string> documented;
  const std::regex name("`((?:spexd|process)_[a-z_]+)`");
  for (const std::string& line : std::vector<std::string>(
           absl::StrSplit(ReadBytes(std::string(SPEXD_SOURCE_DIR) + "/docs/spexd.md"), '\n'))) {
    if (!absl::StartsWith(line, "| `spexd_") && !absl::StartsWith(line, "| `process_")) continue;
    const std::string cell = line.substr(0, line.find('|', 1));
    for (std::sregex_iterator at(cell.begin(), cell.end(), name), end; at != end; ++at)
      documented.insert((*at)[1]);
  }
  EXPECT_GT(documented.size(), 30u);
  EXPECT_EQ(documented, shown);
}

TEST_F(MetricsTest, NameTheReasonsOfRefusalsThatAreDocumented) {
  Start();
  std::set<std::string> shown, documented;
  const auto find = [](const std::string& text, const char* pattern, std::set<std::string>* found) {
    const std::regex name(pattern);
    for (std::sregex_iterator at(text.begin(), text.end(), name), end; at != end; ++at)
      found->insert((*at)[1]);
  };
  find(Get("/metrics").second, "spexd_rejections_total\\{reason=\"([a-z_]+)\"\\}", &shown);
  const std::string page = ReadBytes(std::string(SPEXD_SOURCE_DIR) + "/docs/spexd.md");
  const size_t table = page.find("\n| reason | ");
  ASSERT_NE(table, std::string::npos);
  find(page.substr(table, page.find("\n\n", table) - table), "\n\\| `([a-z_]+)` ", &documented);
  EXPECT_GT(shown.size(), 10u);
  EXPECT_EQ(documented, shown);
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

// Each `name{label="value"}` and `name{label=~"value|value"}` of the alerts. Prometheus adds the label `job`:
// of these, counters are at 0, and gauges have some value.
TEST_F(MetricsTest, HaveEverySeriesThatAlertsNameFromTheStart) {
  Start();
  const std::string scrape = Get("/metrics").second;
  const std::string alerts = ReadBytes(std::string(SPEXD_SOURCE_DIR) + "/deploy/alerts.yml");
  const std::regex matcher("(spexd_[a-z_]+)\\{([a-z]+)=~?\"([^\"]*)\"\\}");
  int checked = 0;
  for (std::sregex_iterator at(alerts.begin(), alerts.end(), matcher), end; at != end; ++at) {
    const std::string name = (*at)[1];
    ++checked;
    if ((*at)[2] == "job") {
      EXPECT_THAT(scrape, ContainsRegex("\n" + name + (absl::EndsWith(name, "_total") ? " 0\n" : "[ {]")));
      continue;
    }
    for (const std::string& value : std::vector<std::string>(absl::StrSplit((*at)[3].str(), '|'))) {
      const std::string series = absl::StrCat(name, "{", (*at)[2].str(), "=\"", value, "\"}");
      EXPECT_THAT(scrape, HasSubstr("\n" + series + " 0\n"));
    }
  }
  EXPECT_GE(checked, 10);
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
    const CommandResult checked = RunCommand({"sh", "-c", "promtool check metrics <" + (folder_ / "scrape")});
    EXPECT_EQ(checked.exit_code, 0) << checked.output;
  }
}

TEST(AlertsTest, AreGoodInTheEyesOfPromtoolAndFireWhenTheyShould) {
  if (RunCommand({"promtool", "--version"}).exit_code != 0) GTEST_SKIP() << "promtool is not installed";
  const std::string deploy = std::string(SPEXD_SOURCE_DIR) + "/deploy/";
  const CommandResult rules = RunCommand({"promtool", "check", "rules", deploy + "alerts.yml"});
  EXPECT_EQ(rules.exit_code, 0) << rules.output;
  const CommandResult fire = RunCommand({"promtool", "test", "rules", deploy + "alerts_test.yml"});
  EXPECT_EQ(fire.exit_code, 0) << fire.output;
}

}  // namespace
}  // namespace spexd::testing
