// Header files and state files of detached jobs, and lines of the index: as they are, or as JSON that gets a
// correct checksum here.
#include <algorithm>
#include <cstdint>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "core/base/digest/crc32c.h"
#include "server/detached/store/job_record.h"
#include "server/schedule/job_claim.h"
#include "tests/fuzz/support/fuzz_check.h"

namespace spexd::fuzz {
namespace {

constexpr int64_t kMaxInteger = int64_t{1} << 62;
constexpr size_t kMaxMessageBytes = 3000;  // a longer one may not fit into a record of a state

const ErrorRules kDamages = {.also = {absl::StatusCode::kDataLoss, absl::StatusCode::kFailedPrecondition}};

std::string Sealed(const std::string& json) { return absl::StrFormat("%08x %s", Crc32c(json), json); }

void RequireWithin(int64_t number, int64_t min, int64_t max) {
  Require(number >= min && number <= max, "a number is within its limits");
}

void UseAsHeader(const std::string& file) {
  StoredJob job;
  const absl::Status read = ParseHeaderRecord(file, &job);
  RequireGoodError(read, kDamages);
  if (!read.ok()) return;
  RequireWithin(job.number, 0, kMaxInteger);
  RequireWithin(job.keep_seconds, 0, kMaxInteger);
  RequireWithin(job.priority, -kMaxPriority, kMaxPriority);
  Require(job.submitted >= 0 && job.deadline >= 0, "times are not negative");
  Require(job.header_bytes == static_cast<int64_t>(job.header.size()), "the header's bytes are counted");
  for (const StoredInput& input : job.inputs) RequireWithin(input.bytes, 0, kMaxInteger);
  StoredJob again;
  Require(ParseHeaderRecord(HeaderRecord(job), &again).ok(), "what is read is written, and read again");
  Require(HeaderRecord(again) == HeaderRecord(job), "a header that is written again says the same");
}

void UseAsState(const std::string& file) {
  StoredJob job;
  const absl::Status read = ParseStateFile(file, &job);
  RequireGoodError(read, kDamages);
  if (!read.ok()) return;
  for (const int64_t number : {job.changes, job.runs, job.deaths, job.device_failures, job.bundles_done,
                               job.bundles_total, job.result_bytes}) {
    RequireWithin(number, 0, kMaxInteger);
  }
  Require(v1::DetachedState_IsValid(job.state) && job.state != v1::DETACHED_STATE_UNSPECIFIED,
          "a state is one that a job can have");
  RequireWithin(job.code, 0, static_cast<int64_t>(absl::StatusCode::kUnauthenticated));
  Require(job.acknowledged <= job.last_sequence, "events that are acknowledged are there");
  Require(job.started >= 0 && job.ended >= 0 && job.expires >= 0, "times are not negative");
  if (job.message.size() > kMaxMessageBytes) return;
  const std::string record = StateRecord(job);
  Require(record.size() == kStateBytes, "records of a state have one size");
  StoredJob again;
  Require(ParseStateFile(record, &again).ok(), "what is read is written, and read again");
  Require(StateRecord(again) == record, "a state that is written again says the same");
}

void UseAsIndex(const std::string& line) {
  StoredJob job;
  const absl::Status read = ParseIndexRecord(line, &job);
  RequireGoodError(read, kDamages);
  if (!read.ok()) return;
  RequireWithin(job.header_bytes, 0, kMaxInteger);
  StoredJob again;
  Require(ParseIndexRecord(IndexRecord(job), &again).ok(), "what is read is written, and read again");
  Require(IndexRecord(again) == IndexRecord(job), "a line that is written again says the same");
}

// Returns a state file of two records, one for each line.
std::string SealedStates(const std::string& lines) {
  const size_t end = std::min(lines.find('\n'), lines.size());
  std::string file = Sealed(lines.substr(0, end));
  if (end == lines.size()) return file;
  file.resize(kStateBytes, ' ');
  return absl::StrCat(file, Sealed(lines.substr(end + 1)));
}

}  // namespace
}  // namespace spexd::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace spexd::fuzz;
  if (size == 0) return 0;
  const std::string text(reinterpret_cast<const char*>(data) + 1, size - 1);
  switch (data[0] % 6) {
    case 0:
      UseAsHeader(text);
      break;
    case 1:
      UseAsState(text);
      break;
    case 2:
      UseAsHeader(Sealed(text));
      break;
    case 3:
      UseAsState(SealedStates(text));
      break;
    case 4:
      UseAsIndex(text);
      break;
    default:
      UseAsIndex(Sealed(text));
  }
  return 0;
}
