// Runs the program with 200 clients for SPEXD_LOAD_SECONDS (600) seconds: why jobs are refused, how long they
// wait and run, and whether memory stays what it was after the first tenth of the time. The README of this
// folder states the limits.
#include <httplib.h>
#include <poll.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "core/base/file_descriptor.h"
#include "tests/service/support/inputs.h"
#include "tests/support/matchers.h"
#include "tests/support/process.h"

namespace spexd::testing {
namespace {

using Clock = std::chrono::steady_clock;
using Series = std::map<std::string, double>;  // values of /metrics by their names, labels included

constexpr int kClients = 200;
constexpr double kOverload = 1.2;    // jobs arriving, per jobs that can be done
constexpr double kMaxGrowth = 0.05;  // of memory
// The server holds at most one job of each client. If it served clients in turn, each would wait for as long
// as that many jobs take; p99 may be this many times as long.
constexpr double kMaxQueue = 3;
constexpr double kMaxServiceSeconds = 1;  // p99
constexpr int kSampleMs = 500;

class ServiceLoad : public ::testing::Test {
 protected:
  ServiceLoad()
      : spexd_({"--allow-root", folder_.path(), "--device", "cpu", "--log-level", "warning",
                "--psf-cache-bytes", "16777216"}) {
    WritePsfFile(folder_ / "psf.fits");
    WritePreprocFile(folder_ / "preproc.fits");
  }

  // Returns the arguments of spex load with uploads of small frames, each with its own grid.
  std::vector<std::string> Load(std::vector<std::string> more) const {
    return Joined({"load", "--server", spexd_.address(), "-i", folder_ / "preproc.fits", "-p",
                   folder_ / "psf.fits", "--by", "upload", "--no-ceiling"},
                  more);
  }
  // Returns jobs per second with as many clients as keep the processors busy.
  double Capacity() const {
    const std::string json = folder_ / "closed.json";
    EXPECT_THAT(Spex(Load({"--clients", "8", "--frames", "800", "--json", json})), ExitsWith(0));
    const auto row = nlohmann::json::parse(ReadBytes(json)).at("rows").at(0);
    return row.at("frames").get<double>() / row.at("seconds").get<double>();
  }
  Series Scrape() const {
    httplib::Client client("http://" + spexd_.http());
    client.set_read_timeout(std::chrono::seconds(60));
    const auto answer = client.Get("/metrics");
    EXPECT_TRUE(answer);
    Series series;
    if (!answer) return series;
    for (const absl::string_view line : absl::StrSplit(answer->body, '\n')) {
      const std::vector<absl::string_view> words = absl::StrSplit(line, absl::MaxSplits(' ', 1));
      double value = 0;
      if (words.size() == 2 && absl::SimpleAtod(words[1], &value)) series[std::string(words[0])] = value;
    }
    return series;
  }

  TempFolder folder_;
  TestServer spexd_;
};

// Returns the largest sample from the fraction `first` to the fraction `last` of the samples.
double Most(const std::vector<double>& samples, double first, double last) {
  const double count = static_cast<double>(samples.size());
  return *std::max_element(samples.begin() + static_cast<int64_t>(first * count),
                           samples.begin() + static_cast<int64_t>(last * count));
}

// Prints the values of a counter that are not 0; returns the sum of those whose label is not in `usual`.
double PrintCounter(const Series& series, const std::string& name, const std::vector<std::string>& usual) {
  double others = 0;
  for (const auto& [line, value] : series) {
    if (!absl::StartsWith(line, name + "{") || value == 0) continue;
    std::printf("  %s %.0f\n", line.c_str(), value);
    const bool expected = std::any_of(usual.begin(), usual.end(), [&line = line](const std::string& label) {
      return absl::StrContains(line, "\"" + label + "\"");
    });
    if (!expected) others += value;
  }
  return others;
}

TEST_F(ServiceLoad, TwoHundredClientsAreServedOrRefusedAndMemoryStaysFlat) {
  const char* wanted = std::getenv("SPEXD_LOAD_SECONDS");
  const double seconds = wanted == nullptr ? 600 : std::atof(wanted);
  const double capacity = Capacity();
  const Series before = Scrape();
  std::vector<std::string> command =
      Load({"--rate", absl::StrCat(kOverload * capacity), "--seconds", absl::StrCat(seconds), "--at-once",
            absl::StrCat(kClients), "-q", "--json", folder_ / "open.json"});
  command.insert(command.begin(), BinFolder() + "/spex");
  Process clients(command);
  const FileDescriptor process(static_cast<int>(syscall(SYS_pidfd_open, clients.id(), 0)));
  std::vector<double> memory;
  pollfd ended = {process.get(), POLLIN, 0};
  while (poll(&ended, 1, kSampleMs) == 0) memory.push_back(Scrape()["process_resident_memory_bytes"]);
  ASSERT_EQ(clients.Wait(), 0) << clients.output();

  Series after = Scrape();
  for (auto& [line, value] : after) {
    const auto was = before.find(line);
    if (absl::StrContains(line, "_total") && was != before.end()) value -= was->second;
  }
  std::printf("capacity with 8 clients: %.0f jobs/s\n%s", capacity, clients.output().c_str());
  EXPECT_EQ(PrintCounter(after, "spexd_jobs_total", {"ok", "resource_exhausted"}), 0);
  EXPECT_EQ(PrintCounter(after, "spexd_rejections_total", {"queue_full"}), 0);
  const double done = after["spexd_jobs_total{outcome=\"ok\"}"];
  std::printf("server: %.2f processor seconds, %.2f ms a job that was done\n",
              after["process_cpu_seconds_total"], 1e3 * after["process_cpu_seconds_total"] / done);
  const auto times = nlohmann::json::parse(ReadBytes(folder_ / "open.json")).at("arrivals").at("rows").at(0);
  const double queue = times.at("queue").at("p99"), service = times.at("service").at("p99");
  std::printf("p99: %.3f s in the queue, %.3f s of service\n", queue, service);
  EXPECT_LT(queue, kMaxQueue * kClients * seconds / done);
  EXPECT_LT(service, kMaxServiceSeconds);
  const double early = Most(memory, 0.1, 0.2), late = Most(memory, 0.9, 1);
  std::printf("memory: %.1f MB after the first tenth, %.1f MB in the last: %+.1f %% (%zu samples)\n",
              1e-6 * early, 1e-6 * late, 100 * (late / early - 1), memory.size());
  EXPECT_LT(std::abs(late / early - 1), kMaxGrowth);
  for (const char* gauge : {"spexd_queue_jobs", "spexd_jobs_in_flight", "spexd_streams", "spexd_queue_bytes"})
    EXPECT_EQ(after[gauge], 0) << gauge;
}

}  // namespace
}  // namespace spexd::testing
