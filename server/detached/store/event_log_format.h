// The format of a job's event log. Records are only appended. Numbers are little-endian.
//
//   header   "SPEXEVT" NUL, version u32, job id (32 characters), CRC-32C of the header so far u32
//   records  sequence u64, length u32, CRC-32C of sequence and length u32,
//            CRC-32C of the payload u32, payload
//
// Sequence numbers are 1, 2, ... A payload is a serialised v1::ExtractEvent.
#ifndef SPEXD_SERVER_DETACHED_STORE_EVENT_LOG_FORMAT_H_
#define SPEXD_SERVER_DETACHED_STORE_EVENT_LOG_FORMAT_H_

#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "server/detached/store/stored_job.h"
#include "spexd/v1/extraction.pb.h"

namespace spexd {

inline constexpr size_t kEventLogHeaderBytes = 8 + 4 + kJobIdBytes + 4;
inline constexpr size_t kRecordHeadBytes = 8 + 4 + 4 + 4;
// A longer record is damaged, because messages stay under gRPC's limit.
inline constexpr uint32_t kMaxRecordBytes = 4 << 20;

struct RecordHead {
  uint64_t sequence = 0;
  uint32_t length = 0;  // of the payload
  uint32_t payload_crc = 0;
};

// Returns the header. REQUIRES: the id has kJobIdBytes.
std::string EventLogHeader(absl::string_view job_id);
// Checks a header. DataLoss: it is damaged or belongs to another job. FailedPrecondition: it has another
// version.
absl::Status CheckEventLogHeader(absl::string_view bytes, absl::string_view job_id);

// Appends a record to `out`.
void AppendRecord(uint64_t sequence, absl::string_view payload, std::string* out);
// Parses the head of the record `sequence`. DataLoss: it is damaged, cut short, or the head of another
// record.
absl::StatusOr<RecordHead> ParseRecordHead(absl::string_view bytes, uint64_t sequence);
// Parses a payload. DataLoss: it is damaged or cut short.
absl::StatusOr<v1::ExtractEvent> ParsePayload(const RecordHead& head, absl::string_view payload);

}  // namespace spexd

#endif  // SPEXD_SERVER_DETACHED_STORE_EVENT_LOG_FORMAT_H_
