// Timing jobs that several clients run on a server at once.
#ifndef SPEXD_CLIENT_LOAD_ROW_H_
#define SPEXD_CLIENT_LOAD_ROW_H_

#include <functional>
#include <stop_token>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "client/bench/measure.h"
#include "client/connection.h"
#include "client/job.h"

namespace spexd::load {

enum class Way { kPath, kUpload };  // how the server gets a job's files
const char* WayName(Way way);       // "path", "upload"

// Seconds, as the client saw them: from before the call, refused attempts and the waits after them included.
struct JobTiming {
  double wall = 0;          // until all of the frame was there, assembled
  double first_bundle = 0;  // until the first bundle was
  int retries = 0;
  // As the server counted them.
  double queue = 0, run = 0;
  std::vector<client::StageSeconds> stages;

  double stage(const std::string& name) const;  // 0 if there is none
  // Of the run: what is neither decode nor prepare, so the engine's, and the wait for it.
  double extract() const { return run - stage("decode") - stage("prepare"); }
  // What is none of the server's receive, queue and run: the way there, the last bundles' way back, the
  // client.
  double rest() const { return wall - stage("receive") - queue - run; }
};

struct Row {
  std::string image;
  Way way = Way::kPath;
  int clients = 1;
  double seconds = 0;     // from the first job's start to the last one's end
  double client_cpu = 0;  // CPU seconds that this process took meanwhile
  std::vector<JobTiming> jobs;

  double rate() const { return static_cast<double>(jobs.size()) / seconds; }
  int retries() const;
  bench::Spread Of(const std::function<double(const JobTiming&)>& value) const;
};

// Runs the jobs, each connection one after the other on a thread of its own, until none is left. The first
// job that fails, or has a bundle that failed, stops all: its error. REQUIRES: there is a job and a
// connection.
absl::StatusOr<Row> TimeJobs(const std::vector<client::Connection*>& connections,
                             const std::vector<client::Job>& jobs, Way way, std::stop_token stop);

}  // namespace spexd::load

#endif  // SPEXD_CLIENT_LOAD_ROW_H_
