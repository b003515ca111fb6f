#include "server/detached/store/event_log_format.h"

#include <bit>
#include <cstring>

#include "absl/strings/str_format.h"
#include "core/base/digest/crc32c.h"

namespace spexd {
namespace {

static_assert(std::endian::native == std::endian::little, "numbers are stored as they lie in memory");

constexpr absl::string_view kMagic("SPEXEVT\0", 8);
constexpr uint32_t kVersion = 1;
constexpr size_t kVersionAt = 8, kIdAt = 12, kHeaderCrcAt = kIdAt + kJobIdBytes;

template <typename Number>
void Append(Number number, std::string* out) {
  out->append(reinterpret_cast<const char*>(&number), sizeof(number));
}

template <typename Number>
Number NumberAt(absl::string_view bytes, size_t offset) {
  Number number;
  std::memcpy(&number, bytes.data() + offset, sizeof(number));
  return number;
}

}  // namespace

std::string EventLogHeader(absl::string_view job_id) {
  std::string header(kMagic);
  Append(kVersion, &header);
  header.append(job_id.data(), job_id.size());
  Append(Crc32c(header), &header);
  return header;
}

absl::Status CheckEventLogHeader(absl::string_view bytes, absl::string_view job_id) {
  if (bytes.size() < kEventLogHeaderBytes) return absl::DataLossError("the header is cut short");
  if (bytes.substr(0, kMagic.size()) != kMagic) return absl::DataLossError("it is no event log");
  if (NumberAt<uint32_t>(bytes, kHeaderCrcAt) != Crc32c(bytes.substr(0, kHeaderCrcAt)))
    return absl::DataLossError("the header's checksum is wrong");
  if (const auto version = NumberAt<uint32_t>(bytes, kVersionAt); version != kVersion) {
    return absl::FailedPreconditionError(
        absl::StrFormat("the event log has version %d, this spexd knows %d", version, kVersion));
  }
  if (bytes.substr(kIdAt, kJobIdBytes) != job_id)
    return absl::DataLossError("the event log is another job's");
  return absl::OkStatus();
}

void AppendRecord(uint64_t sequence, absl::string_view payload, std::string* out) {
  std::string head;
  Append(sequence, &head);
  Append(static_cast<uint32_t>(payload.size()), &head);
  Append(Crc32c(head), &head);
  Append(Crc32c(payload), &head);
  out->append(head);
  out->append(payload.data(), payload.size());
}

absl::StatusOr<RecordHead> ParseRecordHead(absl::string_view bytes, uint64_t sequence) {
  if (bytes.size() < kRecordHeadBytes) {
    return absl::DataLossError(absl::StrFormat("record %d is cut short", sequence));
  }
  const RecordHead head = {NumberAt<uint64_t>(bytes, 0), NumberAt<uint32_t>(bytes, 8),
                           NumberAt<uint32_t>(bytes, 16)};
  if (NumberAt<uint32_t>(bytes, 12) != Crc32c(bytes.substr(0, 12)))
    return absl::DataLossError(absl::StrFormat("the checksum of record %d's head is wrong", sequence));
  if (head.sequence != sequence || head.length > kMaxRecordBytes) {
    return absl::DataLossError(
        absl::StrFormat("record %d has the number %d and %d bytes", sequence, head.sequence, head.length));
  }
  return head;
}

absl::StatusOr<v1::ExtractEvent> ParsePayload(const RecordHead& head, absl::string_view payload) {
  if (payload.size() < head.length)
    return absl::DataLossError(absl::StrFormat("record %d is cut short", head.sequence));
  payload = payload.substr(0, head.length);
  if (Crc32c(payload) != head.payload_crc)
    return absl::DataLossError(absl::StrFormat("the checksum of record %d is wrong", head.sequence));
  v1::ExtractEvent event;
  if (!event.ParseFromArray(payload.data(), static_cast<int>(payload.size())))
    return absl::DataLossError(absl::StrFormat("record %d is no event", head.sequence));
  return event;
}

}  // namespace spexd
