// The engine as operators see it: health, readiness, devices, and what happens to jobs when it fails.
#include <set>

#include "absl/strings/match.h"
#include "nlohmann/json.hpp"
#include "server/server.h"
#include "tests/service/support/harness.h"
#include "tests/support/build_paths.h"
#include "tests/support/matchers.h"

namespace spexd::testing {
namespace {

using grpc::StatusCode;

DeviceStatus FakeDevice(int index) {
  DeviceStatus device;
  device.index = index;
  device.name = "Fake GPU";
  device.memory_bytes = 8000;
  device.resident_bytes = 500 + index;
  device.workspace_bytes = 3000;
  device.running_jobs = 2;
  return device;
}

class EngineTest : public ServiceTest {
 protected:
  EngineTest() {
    engine_->Set([](auto& b) {
      b.info = {"cuda", "2 x Fake GPU", 8, 0};
      b.devices = {FakeDevice(0), FakeDevice(2)};
    });
  }
  void FailDevice(size_t which, const std::string& why) {
    engine_->Set([&](auto& b) { b.devices[which].health = absl::UnavailableError(why); });
  }
  void FailEngine(const std::string& why) {
    engine_->Set([&](auto& b) { b.health = absl::UnavailableError(why); });
  }
  // Stops the server and returns the log's events with this name.
  std::vector<nlohmann::json> Logged(const std::string& event) {
    server_.reset();
    std::istringstream lines(log_.str());
    std::vector<nlohmann::json> found;
    for (std::string line; std::getline(lines, line);) {
      const auto entry = nlohmann::json::parse(line);
      if (entry["event"] == event) found.push_back(entry);
    }
    return found;
  }
};

TEST_F(EngineTest, ShowsItsDevicesInMetricsStatusAndPage) {
  Start();
  EXPECT_EQ(Metric("spexd_engine_info{device=\"2 x Fake GPU\",kind=\"cuda\"}"), 1);
  EXPECT_EQ(Metric("spexd_engine_healthy"), 1);
  const std::string device = "{device=\"2\",name=\"Fake GPU\"}";
  EXPECT_EQ(Metric("spexd_device_healthy" + device), 1);
  EXPECT_EQ(Metric("spexd_device_memory_bytes" + device), 8000);
  EXPECT_EQ(Metric("spexd_device_resident_bytes" + device), 502);
  EXPECT_EQ(Metric("spexd_device_workspace_bytes" + device), 3000);
  EXPECT_EQ(Metric("spexd_device_running_jobs" + device), 2);

  const v1::Capabilities status = Status();
  ASSERT_EQ(status.engines_size(), 1);
  EXPECT_TRUE(status.engines(0).runnable());
  EXPECT_EQ(status.engines(0).detail(), "2 x Fake GPU");
  ASSERT_EQ(status.engines(0).devices_size(), 2);
  EXPECT_EQ(status.engines(0).devices(1).index(), 2u);
  EXPECT_EQ(status.engines(0).devices(1).resident_bytes(), 502u);
  EXPECT_TRUE(status.engines(0).devices(1).healthy());
  EXPECT_EQ(status.limits().max_running_jobs(), 16u);  // twice the engine's number
  EXPECT_THAT(Get("/").second, HasSubstr("device 2, Fake GPU</span>2 jobs"));
}

TEST_F(EngineTest, StaysReadyWhileADeviceIsWell) {
  Start();
  FailDevice(1, "an illegal address in solve");
  EXPECT_EQ(Get("/readyz").first, 200);
  EXPECT_EQ(Health(""), kServing);
  EXPECT_TRUE(Extract(PathHeader()).status.ok());
  EXPECT_EQ(Metric("spexd_device_healthy{device=\"2\",name=\"Fake GPU\"}"), 0);
  EXPECT_EQ(Metric("spexd_device_healthy{device=\"0\",name=\"Fake GPU\"}"), 1);
  EXPECT_EQ(Metric("spexd_engine_healthy"), 1);
  EXPECT_EQ(Status().engines(0).devices(1).detail(), "an illegal address in solve");
  EXPECT_THAT(Get("/").second, HasSubstr("device 2, Fake GPU</span><span class=\"bad\">failed</span>"));
  EXPECT_THAT(Get("/").second, HasSubstr("an illegal address in solve"));
  const auto logged = Logged("device_failed");
  ASSERT_EQ(logged.size(), 1u);
  EXPECT_EQ(logged[0]["level"], "error");
  EXPECT_EQ(logged[0]["device"], 2);
  EXPECT_EQ(logged[0]["message"], "an illegal address in solve");
}

TEST_F(EngineTest, ServesNoMoreOnceTheEngineFailed) {
  Start();
  EXPECT_EQ(Get("/readyz").first, 200);
  EXPECT_EQ(Health(""), kServing);
  FailEngine("all devices failed");
  const auto [code, body] = Get("/readyz");
  EXPECT_EQ(code, 503);
  EXPECT_THAT(body, HasSubstr("all devices failed"));
  EXPECT_EQ(Get("/livez").first, 200);
  for (const char* service : {"", "spexd.v1.Extraction", "spexd.v1.PsfRegistry"}) {
    EXPECT_EQ(Health(service), kNotServing) << service;
  }
  EXPECT_EQ(Metric("spexd_engine_healthy"), 0);
  const v1::Capabilities status = Status();
  EXPECT_FALSE(status.engines(0).runnable());
  EXPECT_THAT(status.engines(0).detail(), HasSubstr("all devices failed"));
  EXPECT_THAT(Get("/").second, HasSubstr("not serving"));

  const Answer refused = Extract(PathHeader());
  EXPECT_THAT(refused.status,
              StatusIs(StatusCode::UNAVAILABLE, HasSubstr("can run no more jobs: all devices failed")));
  EXPECT_TRUE(refused.events.empty());
  EXPECT_EQ(engine_->seen().extracts, 0);
  EXPECT_EQ(Logged("engine_failed").size(), 1u);
}

TEST_F(EngineTest, FailsAJobWhoseDeviceDiedAsRetryable) {
  Start();
  engine_->Set([](auto& b) { b.extract_error = absl::UnavailableError("device 0 failed in solve"); });
  const Answer failed = Extract(PathHeader());
  EXPECT_EQ(failed.status.error_code(), StatusCode::UNAVAILABLE);
  EXPECT_EQ(failed.message(), "device 0 failed in solve");
  EXPECT_GT(failed.retry_seconds(), 0);
  EXPECT_EQ(Metric("spexd_jobs_total{outcome=\"unavailable\"}"), 1);
  engine_->Set([](auto& b) { b.extract_error = absl::OkStatus(); });
  EXPECT_TRUE(Extract(PathHeader()).status.ok());
}

TEST_F(EngineTest, NoticesItsEnginesFailureByAFailedJobAlone) {
  options_.http = "none";
  Start();
  engine_->Set([](auto& b) { b.extract_error = absl::UnavailableError("device 0 failed in solve"); });
  const auto job = HoldJobAtGate();
  ASSERT_NE(job, nullptr);
  FailEngine("all devices failed");
  EXPECT_EQ(Health(""), kServing);
  EXPECT_EQ(LetGo(job.get()).status.error_code(), StatusCode::UNAVAILABLE);
  EXPECT_EQ(Health(""), kNotServing);
}

TEST_F(EngineTest, ServesAgainOnceTheEngineIsWell) {
  Start();
  FailEngine("all devices failed");
  EXPECT_EQ(Get("/readyz").first, 503);
  engine_->Set([](auto& b) { b.health = absl::OkStatus(); });
  EXPECT_EQ(Get("/readyz").first, 200);
  EXPECT_EQ(Health(""), kServing);
  EXPECT_TRUE(Extract(PathHeader()).status.ok());
  EXPECT_TRUE(server_->Drain());
}

TEST_F(EngineTest, ADrainOutlastsTheEnginesRecovery) {
  Start();
  const auto job = HoldJobAtGate();
  ASSERT_NE(job, nullptr);
  FailEngine("all devices failed");
  EXPECT_FALSE(server_->CheckHealth().ok());
  std::thread drain([&] { EXPECT_TRUE(server_->Drain()); });
  EXPECT_TRUE(Eventually([&] { return Metric("spexd_draining") == 1; }));
  engine_->Set([](auto& b) { b.health = absl::OkStatus(); });
  EXPECT_TRUE(server_->CheckHealth().ok());
  EXPECT_EQ(Get("/readyz").second, "draining\n");
  EXPECT_EQ(Health(""), kNotServing);
  EXPECT_TRUE(LetGo(job.get()).status.ok());
  drain.join();
}

TEST_F(EngineTest, SaysWhyItRunsOnTheCpu) {
  engine_->Set([](auto& b) {
    b.info = {"cpu", "AVX-512, 2 threads", 2, 0};
    b.devices.clear();
  });
  auto server = Server::Start(options_, std::make_unique<FakeEngine>(engine_), MakeStreamSink(&log_),
                              "no NVIDIA <driver> here");
  ASSERT_TRUE(server.ok()) << server.status();
  server_ = *std::move(server);
  const v1::Capabilities status = Status();
  ASSERT_EQ(status.engines_size(), 2);
  EXPECT_EQ(status.engines(0).kind(), "cpu");
  EXPECT_EQ(status.engines(1).kind(), "cuda");
  EXPECT_FALSE(status.engines(1).runnable());
  EXPECT_EQ(status.engines(1).detail(), "no NVIDIA <driver> here");
  EXPECT_EQ(status.limits().max_running_jobs(), 2u);
  EXPECT_THAT(Get("/").second, HasSubstr("no NVIDIA &lt;driver&gt; here"));
  EXPECT_THAT(Get("/metrics").second, Not(HasSubstr("spexd_device_")));
  const auto logged = Logged("engine_fallback");
  ASSERT_EQ(logged.size(), 1u);
  EXPECT_EQ(logged[0]["level"], "warning");
  EXPECT_EQ(logged[0]["cuda"], "no NVIDIA <driver> here");
}

// Returns the names of metrics in a text, without the suffixes of histograms' series and without recorded
// series ("level:metric:operation").
std::set<std::string> MetricNames(const std::string& text) {
  std::set<std::string> names;
  const std::string letters = "abcdefghijklmnopqrstuvwxyz0123456789_:";
  for (const std::string prefix : {"spexd_", "process_"}) {
    for (size_t at = text.find(prefix); at != std::string::npos; at = text.find(prefix, at + 1)) {
      if (at > 0 && letters.find(text[at - 1]) != std::string::npos) continue;
      names.insert(text.substr(at, text.find_first_not_of(letters, at) - at));
    }
  }
  return names;
}

TEST_F(EngineTest, AlertsAndDashboardAskForMetricsThatExist) {
  Start();
  ASSERT_TRUE(Extract(PathHeader()).status.ok());
  const std::set<std::string> shown = MetricNames(Get("/metrics").second);
  const std::string deploy = SourceFolder() + "/deploy/";
  std::string asked;
  std::istringstream alerts(ReadBytes(deploy + "alerts.yml"));
  for (std::string line; std::getline(alerts, line);) {
    if (line.find('#') == std::string::npos) asked += line + "\n";
  }
  const auto dashboard = nlohmann::json::parse(ReadBytes(deploy + "grafana/spexd.json"));
  for (const auto& panel : dashboard["panels"]) {
    if (!panel.contains("targets")) continue;
    for (const auto& target : panel["targets"]) asked += target["expr"].get<std::string>() + "\n";
  }
  const std::set<std::string> names = MetricNames(asked);
  EXPECT_GT(names.size(), 10u);
  EXPECT_EQ(names.count("spexd_device_healthy"), 1u);
  for (const std::string& name : names) {
    if (absl::StartsWith(name, "spexd_night_")) continue;  // metrics of spex night have their own test
    EXPECT_EQ(shown.count(name), 1u) << name;
  }
}

}  // namespace
}  // namespace spexd::testing
