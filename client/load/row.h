// The timing of jobs that several clients run on a server at once.
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

// The seconds of a job, from before the call, with refused attempts and the waits after them.
struct JobTiming {
  double wall = 0;          // until the whole frame was received and assembled
  double first_bundle = 0;  // until the first bundle was received
  int retries = 0;
  // These times are measured by the server.
  double queue = 0, run = 0;
  std::vector<StageSeconds> stages;

  double stage(const std::string& name) const;  // 0 if there is none
  // The run without decode and prepare: the engine's work and the wait for it.
  double extract() const { return run - stage("decode") - stage("prepare"); }
  // The time outside the server's receive, queue and run: the transfer to the server, that of the last
  // bundles back, and the client.
  double rest() const { return wall - stage("receive") - queue - run; }
};

// Runs one job. Internal: one of its bundles failed. If a product that it asks for failed, returns its error.
// Sets `accepted` (may be null) to whether a server took the job, also if it failed later.
absl::StatusOr<JobTiming> TimeJob(client::Extractor* extractor, const client::Job& job, std::stop_token stop,
                                  bool* accepted = nullptr);

struct Row {
  std::string image;
  Way way = Way::kPath;
  int clients = 1;
  double seconds = 0;     // from the start of the first job to the end of the last
  double client_cpu = 0;  // CPU seconds of this process meanwhile
  std::vector<JobTiming> jobs;

  double rate() const { return static_cast<double>(jobs.size()) / seconds; }
  int retries() const;
  bench::Spread Of(const std::function<double(const JobTiming&)>& value) const;
};

// Runs the jobs on all connections at once. Each connection has a thread, which runs one job after the other.
// The first job that fails, or has a failed bundle, stops all others, and its error is returned. REQUIRES: at
// least one job and one connection.
absl::StatusOr<Row> TimeJobs(const std::vector<client::Connection*>& connections,
                             const std::vector<client::Job>& jobs, Way way, std::stop_token stop);

}  // namespace spexd::load

#endif  // SPEXD_CLIENT_LOAD_ROW_H_
