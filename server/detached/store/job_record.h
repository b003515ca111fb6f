// The format of a job's two text files. A record is a line: a CRC-32C in hexadecimal digits, a space, and
// JSON. `cut -c10- FILE | jq` shows it.
//
//   header  what was submitted: one record
//   state   what happened since: two records of kStateBytes. Changes are written to them alternately, so that
//           the previous record is whole while the next one is written. The record with more `changes`
//           counts. A change needs no further space on the disk, which may be full.
#ifndef SPEXD_SERVER_DETACHED_STORE_JOB_RECORD_H_
#define SPEXD_SERVER_DETACHED_STORE_JOB_RECORD_H_

#include <cstddef>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "server/detached/store/stored_job.h"

namespace spexd {

inline constexpr size_t kStateBytes = 4096;  // size of one record

// Returns the record of what was submitted.
std::string HeaderRecord(const StoredJob& job);
// Returns StoredJob::header from a record. Errors as in ParseHeaderRecord.
absl::StatusOr<std::string> HeaderOf(absl::string_view text);
// Sets the job's fields of what was submitted. DataLoss: the record is damaged. FailedPrecondition: a newer
// version of spexd wrote it.
absl::Status ParseHeaderRecord(absl::string_view text, StoredJob* job);

// Returns the record of what happened, of kStateBytes.
std::string StateRecord(const StoredJob& job);
// Sets the job's fields of what happened, from one record. DataLoss: the record is damaged.
absl::Status ParseStateRecord(absl::string_view text, StoredJob* job);
// Does the same from a whole file. DataLoss: both records are damaged.
absl::Status ParseStateFile(absl::string_view text, StoredJob* job);

// Returns the job without StoredJob::header as a line of the index (see index_file.h).
std::string IndexRecord(const StoredJob& job);
// Parses a line of the index. DataLoss: it is damaged. FailedPrecondition: it has another version.
absl::Status ParseIndexRecord(absl::string_view text, StoredJob* job);

}  // namespace spexd

#endif  // SPEXD_SERVER_DETACHED_STORE_JOB_RECORD_H_
