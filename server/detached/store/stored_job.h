// A detached job as the store keeps it, and the rules for changes of its state.
#ifndef SPEXD_SERVER_DETACHED_STORE_STORED_JOB_H_
#define SPEXD_SERVER_DETACHED_STORE_STORED_JOB_H_

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "server/base/json_fields.h"
#include "spexd/v1/jobs.pb.h"

namespace spexd {

// The names of uploads and of their files.
inline constexpr std::array<absl::string_view, 6> kInputNames = {"image",     "psf",       "fibermap",
                                                                 "fiberflat", "templates", "trace_reference"};

// A file that the client uploaded with its job.
struct StoredInput {
  std::string name;  // one of kInputNames
  int64_t bytes = 0;
  std::string sha256;  // 64 hexadecimal digits
};

// A detached job. Times are those of SecondsSince1970; 0: not yet.
struct StoredJob {
  // What was submitted. It never changes.
  int64_t number = 0;  // in the order of submission
  std::string id, owner, request_id;
  std::string image, psf;  // names of the inputs
  std::string header;      // serialised v1::JobHeader; "" if it was not read
  int64_t header_bytes = 0;
  std::vector<StoredInput> inputs;
  std::string digest;    // SHA-256 of all that was submitted; equal for equal submissions
  std::string trace_id;  // of the Submit call; "": none
  int64_t keep_seconds = 0;
  double submitted = 0;
  double deadline = 0;  // 0: none
  int64_t priority = 0;

  // What happened to the job.
  int64_t changes = 0;  // number of states that were written before this one
  v1::DetachedState state = v1::DETACHED_STATE_QUEUED;
  double started = 0, ended = 0, expires = 0;
  int64_t runs = 0;
  int64_t deaths = 0;           // number of runs during which the server's process died
  int64_t device_failures = 0;  // number of runs whose device failed, since the last new result
  int64_t bundles_done = 0, bundles_total = 0;
  uint64_t last_sequence = 0;  // of the last event that watchers may have read, which is on disk
  uint64_t acknowledged = 0;
  int64_t result_bytes = 0;  // size of the event log
  int64_t code = 0;          // an absl::StatusCode
  std::string message;

  bool has_ended() const { return state != v1::DETACHED_STATE_QUEUED && state != v1::DETACHED_STATE_RUNNING; }
  int64_t input_bytes() const;
};

// The numbers of deaths of the server, and of device failures without a new result, at which a job is given
// up.
inline constexpr int64_t kMaxDeaths = 3, kMaxDeviceFailures = 101;
// OK: the job may run again. Internal: it is given up; the message says how often it was begun, why it is
// given up, and what to do next.
absl::Status CheckFailures(const StoredJob& job);
// Whether one more death of the server ends the job.
inline bool IsLastTry(const StoredJob& job) { return job.deaths + 1 >= kMaxDeaths; }
// Aborted: the job has ended.
absl::Status CheckNotEnded(const StoredJob& job);
// Sets the job's fields for its end with `result`. Results that nobody can read are no longer counted.
void EndJob(const absl::Status& result, StoredJob* job);

// Disk space of a job other than header, inputs and results: its folder, its state, and the unused ends of
// its files' last blocks.
inline constexpr int64_t kJobBytes = 16384;
// Returns the disk space that a job takes, in bytes.
int64_t DiskOf(const StoredJob& job);

// Returns the wall clock's time in seconds since 1970, always above 0. If the clock shows a time before 1970,
// as on a machine without a battery, returns the time since the machine started, so that deadlines and times
// to live still pass.
double SecondsSince1970();
inline constexpr size_t kJobIdBytes = 32;
// Returns kJobIdBytes random hexadecimal digits.
std::string NewJobId();
// Whether the text has the form of a job's id: kJobIdBytes letters and digits.
bool IsJobId(absl::string_view text);
// Returns the first fields of log lines about a job outside of its Submit call. They have no span, because
// the submitter's span ended with the call.
JsonFields LogFieldsOf(const StoredJob& job);
// Returns the seconds from a job's submission to its end; at least 0, although the clock may have been set.
inline double SecondsToEnd(const StoredJob& job) { return std::max(0.0, job.ended - job.submitted); }

}  // namespace spexd

#endif  // SPEXD_SERVER_DETACHED_STORE_STORED_JOB_H_
