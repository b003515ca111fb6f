// Timing jobs that several clients run on a server at once.
#ifndef SPEXD_CLIENT_LOAD_ROW_H_
#define SPEXD_CLIENT_LOAD_ROW_H_

#include <functional>
#include <stop_token>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "client/bench/measure.h"
#include "client/connection/connection.h"
#include "client/job.h"

namespace spexd::load {

enum class Way { kPath, kUpload };  // how the server gets a job's files
const char* WayName(Way way);       // "path", "upload"

// Seconds measured by the client, beginning before the call, with refused attempts and the waits after them.
struct JobTiming {
  double wall = 0;          // time until the whole frame was received and assembled
  double first_bundle = 0;  // time until the first bundle was received
  int retries = 0;
  // Times measured by the server.
  double queue = 0, run = 0;
  std::vector<StageSeconds> stages;

  double stage(const std::string& name) const;  // 0 if there is none
  // The rest of the run besides decode and prepare: the engine's work, and the wait for it.
  double extract() const { return run - stage("decode") - stage("prepare"); }
  // Time outside the server's receive, queue and run: transfer to the server, the last bundles' transfer
  // back, and the client.
  double rest() const { return wall - stage("receive") - queue - run; }
};

// Runs one job. Internal if one of its bundles failed; a product's error if one that it asks for failed.
// `accepted` (may be null) tells whether a server had taken it, also where it failed later.
absl::StatusOr<JobTiming> TimeJob(client::Extractor* extractor, const client::Job& job, std::stop_token stop,
                                  bool* accepted = nullptr);

struct Row {
  std::string image;
  Way way = Way::kPath;
  int clients = 1;
  double seconds = 0;     // time from the first job's start to the last one's end
  double client_cpu = 0;  // CPU seconds that this process took meanwhile
  std::vector<JobTiming> jobs;

  double rate() const { return static_cast<double>(jobs.size()) / seconds; }
  int retries() const;
  bench::Spread Of(const std::function<double(const JobTiming&)>& value) const;
};

// Runs the jobs on all connections at once, until none is left. Each connection has its own thread and runs
// one job after the other. The first job that fails, or that has a failed bundle, stops all; its error is
// returned. REQUIRES: there is a job and a connection.
absl::StatusOr<Row> TimeJobs(const std::vector<client::Connection*>& connections,
                             const std::vector<client::Job>& jobs, Way way, std::stop_token stop);

}  // namespace spexd::load

#endif  // SPEXD_CLIENT_LOAD_ROW_H_
