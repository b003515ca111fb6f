// The two text files that tell what a job is and what became of it: a line of JSON each, behind its CRC-32C
// in hexadecimal digits. `cut -c10- FILE | jq` shows it.
//
//   header  what was submitted, one record
//   state   what happened since, two records of kStateBytes: changes are written to them in turn, so that the
//           one before is whole while the other is being written. The one with more `changes` counts. No
//           change needs room on the disk, which may be full.
#ifndef SPEXD_SERVER_DETACHED_STORE_JOB_RECORD_H_
#define SPEXD_SERVER_DETACHED_STORE_JOB_RECORD_H_

#include <cstddef>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "server/detached/store/stored_job.h"

namespace spexd {

inline constexpr size_t kStateBytes = 4096;  // of one record

std::string HeaderRecord(const StoredJob& job);
// The job's header alone. Errors: see ParseHeaderRecord.
absl::StatusOr<std::string> HeaderOf(absl::string_view text);
// Sets what was submitted. DataLoss: damaged. FailedPrecondition: of a newer version of spexd.
absl::Status ParseHeaderRecord(absl::string_view text, StoredJob* job);

// kStateBytes.
std::string StateRecord(const StoredJob& job);
// Sets what happened, from one record. DataLoss: damaged.
absl::Status ParseStateRecord(absl::string_view text, StoredJob* job);
// The same from a whole file, of whose records at least one must be intact.
absl::Status ParseStateFile(absl::string_view text, StoredJob* job);

// All of a job but the bytes of its header, as one line: a record of the index, see index_file.h.
std::string IndexRecord(const StoredJob& job);
// DataLoss: damaged. FailedPrecondition: of another version.
absl::Status ParseIndexRecord(absl::string_view text, StoredJob* job);

}  // namespace spexd

#endif  // SPEXD_SERVER_DETACHED_STORE_JOB_RECORD_H_
