// A detached job as the store keeps it, and the rules by which its state changes.
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

// Names of uploads, and of their files.
inline constexpr std::array<absl::string_view, 6> kInputNames = {"image",     "psf",       "fibermap",
                                                                 "fiberflat", "templates", "trace_reference"};

// A file that the client uploaded with its job.
struct StoredInput {
  std::string name;  // one of kInputNames
  int64_t bytes = 0;
  std::string sha256;  // 64 hexadecimal digits
};

// Times are those of SecondsSince1970; 0: not yet.
struct StoredJob {
  // What was submitted. It never changes.
  int64_t number = 0;  // in the order of submission
  std::string id, owner, request_id;
  std::string image, psf;  // names of the inputs
  std::string header;      // v1::JobHeader, serialised; "" where it was not read
  int64_t header_bytes = 0;
  std::vector<StoredInput> inputs;
  std::string digest;    // SHA-256 of header and inputs: the same for the same submission
  std::string trace_id;  // of the Submit call; "": none
  int64_t keep_seconds = 0;
  double submitted = 0;
  double deadline = 0;  // 0: none
  int64_t priority = 0;

  // What happened to it.
  int64_t changes = 0;  // states that were written before this one
  v1::DetachedState state = v1::DETACHED_STATE_QUEUED;
  double started = 0, ended = 0, expires = 0;
  int64_t runs = 0;
  int64_t deaths = 0;           // runs during which the server's process died
  int64_t device_failures = 0;  // runs whose device failed, since the last new result
  int64_t bundles_done = 0, bundles_total = 0;
  uint64_t last_sequence = 0;  // of the events that may have been read; they were on disk before
  uint64_t acknowledged = 0;
  int64_t result_bytes = 0;  // of the event log
  int64_t code = 0;          // an absl::StatusCode
  std::string message;

  bool has_ended() const { return state != v1::DETACHED_STATE_QUEUED && state != v1::DETACHED_STATE_RUNNING; }
  int64_t input_bytes() const;
};

// Runs during which the server may die, or a device may fail without a new result, before a job is given up.
inline constexpr int64_t kMaxDeaths = 3, kMaxDeviceFailures = 101;
// Internal: the job is not run again. The message tells how often it was begun, why it is given up, and what
// to do next.
absl::Status CheckFailures(const StoredJob& job);
// Whether the next death ends the job.
inline bool IsLastTry(const StoredJob& job) { return job.deaths + 1 >= kMaxDeaths; }
// Aborted: it has ended.
absl::Status CheckNotEnded(const StoredJob& job);
// Sets how the job ends now. Results that nobody can ask for any more are dropped.
void EndJob(const absl::Status& result, StoredJob* job);

// Disk that a job takes beside its header, inputs and results: its folder, its state and the ends of its
// files.
inline constexpr int64_t kJobBytes = 16384;
// Disk that a job takes.
int64_t DiskOf(const StoredJob& job);

// The wall clock in seconds, always above 0. While the clock shows a time before 1970, as that of a machine
// without a battery may, it is the time since the machine started: deadlines and times to live pass all the
// same.
double SecondsSince1970();
inline constexpr size_t kJobIdBytes = 32;
// kJobIdBytes hexadecimal digits, at random.
std::string NewJobId();
// Whether a text has the form of a job's id: kJobIdBytes letters and digits.
bool IsJobId(absl::string_view text);
// How each log line of a job that is no Submit call's own begins. The submitter's span ended with its call.
JsonFields LogFieldsOf(const StoredJob& job);
// How long after its submission a job ended, at least 0: the clock may have been set meanwhile.
inline double SecondsToEnd(const StoredJob& job) { return std::max(0.0, job.ended - job.submitted); }

}  // namespace spexd

#endif  // SPEXD_SERVER_DETACHED_STORE_STORED_JOB_H_
