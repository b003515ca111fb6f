// A detached job as the journal holds it, and the rules of its row.
#ifndef SPEXD_SERVER_DETACHED_STORE_JOURNAL_JOB_ROW_H_
#define SPEXD_SERVER_DETACHED_STORE_JOURNAL_JOB_ROW_H_

#include <algorithm>
#include <array>
#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "server/base/json_fields.h"
#include "spexd/v1/jobs.pb.h"

namespace spexd {

// Times are of SecondsSince1970; 0: not yet.
struct JobRow {
  int64_t number = 0;  // in the order of submission
  std::string id, owner, request_id;
  std::string image, psf;  // names of the inputs
  std::string header;      // v1::JobHeader; "" in lists
  std::string digest;      // SHA-256 of header and input: the same for the same submission
  std::string trace_id;    // of the Submit call; "": none
  int64_t keep_seconds = 0;
  double submitted = 0;
  double deadline = 0;          // 0: none
  int64_t header_checksum = 0;  // CRC-32C of `header`, kept by the journal
  v1::DetachedState state = v1::DETACHED_STATE_QUEUED;
  int priority = 0;
  double started = 0, ended = 0, expires = 0;
  int64_t runs = 0;
  // Runs that did not come to their end, perhaps because of the job, in one column: kDeath for each run
  // during which the server's process died, and 1 for each one whose device failed since the last new result.
  int64_t setbacks = 0;
  int64_t bundles_done = 0, bundles_total = 0;
  uint64_t last_sequence = 0;  // of the events that were shown: always on disk before
  uint64_t acknowledged = 0;
  int64_t input_bytes = 0, result_bytes = 0;  // on disk
  int code = 0;
  std::string message;

  static constexpr int64_t kDeath = 1 << 16;

  bool has_ended() const { return state != v1::DETACHED_STATE_QUEUED && state != v1::DETACHED_STATE_RUNNING; }
  int64_t deaths() const { return setbacks / kDeath; }
  int64_t device_failures() const { return setbacks % kDeath; }
};

// Runs during which the server may die, or a device may fail without a new result, before a job is given up.
inline constexpr int64_t kMaxDeaths = 3, kMaxDeviceFailures = 101;
// Internal: the job is not run again. The message tells how often it was begun, why it is given up, and what
// to do next.
absl::Status CheckSetbacks(const JobRow& row);
// Whether the next death ends the job.
inline bool IsLastTry(const JobRow& row) { return row.deaths() + 1 >= kMaxDeaths; }

// InvalidArgument names the column and the value, where it is one that no job has. SQLite has no checksums:
// of a damaged file it may give such values.
absl::Status CheckRow(const JobRow& row);

// Disk of a job before its results are known, beside its header and input: a row of the journal.
inline constexpr int64_t kRowBytes = 4096;
// Names of a job's inputs, those of their files too.
inline constexpr std::array<const char*, 5> kInputNames = {"image", "psf", "fibermap", "fiberflat",
                                                           "templates"};

// The wall clock in seconds, always above 0. While the clock shows a time before 1970, as that of a machine
// without a battery may, it is the time since the machine started: deadlines and times to live pass all the
// same.
double SecondsSince1970();
// 32 hexadecimal digits, at random.
std::string NewJobId();
// How each log line of a job that is no Submit call's own begins. The submitter's span ended with its call.
JsonFields LogFieldsOf(const JobRow& row);
// Disk that a job holds.
int64_t DiskOf(const JobRow& row);
// The row of a job that ends now, with that result. REQUIRES: it has its header.
void EndRow(const absl::Status& result, JobRow* row);
// How long after its submission a job ended, at least 0: the clock may have been set meanwhile.
inline double SecondsToEnd(const JobRow& row) { return std::max(0.0, row.ended - row.submitted); }
// Aborted: it has ended.
absl::Status CheckNotEnded(const JobRow& row);

}  // namespace spexd

#endif  // SPEXD_SERVER_DETACHED_STORE_JOURNAL_JOB_ROW_H_
