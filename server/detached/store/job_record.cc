#include "server/detached/store/job_record.h"

#include <algorithm>
#include <cstdint>
#include <type_traits>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "core/base/digest/crc32c.h"
#include "core/base/status_macros.h"
#include "core/base/text.h"
#include "nlohmann/json.hpp"
#include "server/schedule/job_claim.h"

namespace spexd {
namespace {

using Json = nlohmann::json;

constexpr int64_t kRecordVersion = 1;
constexpr int64_t kMaxInteger = int64_t{1} << 62;
constexpr int64_t kMaxBytes = int64_t{1} << 50;  // the largest size of a file
constexpr int64_t kMaxCode = 16;                 // the largest gRPC status code

// Calls visit(name, field) or visit(name, field, min, max) for each field of the header's record except
// `header` and `inputs`.
template <typename Job, typename Visit>
void VisitHeader(Job& job, const Visit& visit) {
  visit("number", job.number);
  visit("id", job.id);
  visit("owner", job.owner);
  visit("request_id", job.request_id);
  visit("image", job.image);
  visit("psf", job.psf);
  visit("digest", job.digest);
  visit("trace_id", job.trace_id);
  visit("keep_seconds", job.keep_seconds);
  visit("submitted", job.submitted);
  visit("deadline", job.deadline);
  visit("priority", job.priority, -kMaxPriority, kMaxPriority);
}

template <typename Job, typename Visit>
void VisitState(Job& job, const Visit& visit) {
  visit("changes", job.changes);
  visit("state", job.state, int64_t{v1::DETACHED_STATE_QUEUED}, int64_t{v1::DetachedState_MAX});
  visit("started", job.started);
  visit("ended", job.ended);
  visit("expires", job.expires);
  visit("runs", job.runs);
  visit("deaths", job.deaths);
  visit("device_failures", job.device_failures);
  visit("bundles_done", job.bundles_done);
  visit("bundles_total", job.bundles_total);
  visit("last_sequence", job.last_sequence);
  visit("acknowledged", job.acknowledged, int64_t{0}, static_cast<int64_t>(job.last_sequence));
  visit("result_bytes", job.result_bytes, int64_t{0}, kMaxBytes);
  visit("code", job.code, int64_t{0}, kMaxCode);
  visit("message", job.message);
}

struct Write {
  Json* out;
  template <typename Value>
  void operator()(const char* name, const Value& value, int64_t = 0, int64_t = 0) const {
    (*out)[name] = value;
  }
};

struct Read {
  const Json& in;
  absl::Status* status;

  void Refuse(const char* name) const {
    if (status->ok()) *status = absl::DataLossError(absl::StrCat(name, " is missing, or no value of a job"));
  }
  template <typename Value>
  void operator()(const char* name, Value& value, int64_t min = 0, int64_t max = kMaxInteger) const {
    const auto found = in.find(name);
    if (found == in.end()) return Refuse(name);
    if constexpr (std::is_same_v<Value, std::string>) {
      if (!found->is_string()) return Refuse(name);
      value = found->template get<std::string>();
    } else if constexpr (std::is_floating_point_v<Value>) {
      if (!found->is_number() || !(found->template get<double>() >= 0)) return Refuse(name);
      value = found->template get<double>();
    } else {
      if (!found->is_number_integer()) return Refuse(name);
      if (found->is_number_unsigned() && found->template get<uint64_t>() > kMaxInteger) return Refuse(name);
      const auto number = found->template get<int64_t>();
      if (number < min || number > max) return Refuse(name);
      value = static_cast<Value>(number);
    }
  }
};

std::string Seal(const Json& json) {
  const std::string text = json.dump(-1, ' ', false, Json::error_handler_t::replace);
  return absl::StrCat(absl::Hex(Crc32c(text), absl::kZeroPad8), " ", text);
}

absl::StatusOr<Json> Unseal(absl::string_view record) {
  constexpr size_t kChecksumBytes = 9;  // with the space after it
  record = absl::StripTrailingAsciiWhitespace(record);
  if (record.size() < kChecksumBytes) return absl::DataLossError("it is cut short");
  const absl::string_view text = record.substr(kChecksumBytes);
  if (record.substr(0, kChecksumBytes) != absl::StrCat(absl::Hex(Crc32c(text), absl::kZeroPad8), " "))
    return absl::DataLossError("its checksum is wrong");
  Json json = Json::parse(text, nullptr, false);
  if (!json.is_object()) return absl::DataLossError("it is no JSON object");
  return json;
}

absl::Status ReadInputs(const Json& record, StoredJob* job) {
  const auto inputs = record.find("inputs");
  if (inputs == record.end() || !inputs->is_array()) return absl::DataLossError("inputs is missing");
  job->inputs.clear();
  absl::Status status;
  for (const Json& element : *inputs) {
    StoredInput input;
    const Read read = {element, &status};
    read("name", input.name);
    read("bytes", input.bytes, 0, kMaxBytes);
    read("sha256", input.sha256);
    const bool known = std::find(kInputNames.begin(), kInputNames.end(), input.name) != kInputNames.end();
    const bool twice = std::any_of(job->inputs.begin(), job->inputs.end(),
                                   [&](const StoredInput& other) { return other.name == input.name; });
    if (!known || twice)
      return absl::DataLossError(absl::StrCat("inputs has \"", ForMessage(input.name), "\""));
    job->inputs.push_back(std::move(input));
  }
  return status;
}

// Returns the fields of what was submitted, except StoredJob::header.
Json Submitted(const StoredJob& job) {
  Json record = {{"version", kRecordVersion}, {"inputs", Json::array()}};
  VisitHeader(job, Write{&record});
  for (const StoredInput& input : job.inputs)
    record["inputs"].push_back({{"name", input.name}, {"bytes", input.bytes}, {"sha256", input.sha256}});
  return record;
}

absl::Status ReadSubmitted(const Json& record, StoredJob* job) {
  absl::Status status;
  VisitHeader(*job, Read{record, &status});
  SPEXD_RETURN_IF_ERROR(status);
  return ReadInputs(record, job);
}

// Returns the JSON of a record with a version.
absl::StatusOr<Json> UnsealVersion(absl::string_view text) {
  SPEXD_ASSIGN_OR_RETURN(Json record, Unseal(text));
  absl::Status status;
  int64_t version = 0;
  Read{record, &status}("version", version);
  SPEXD_RETURN_IF_ERROR(status);
  if (version <= kRecordVersion) return record;
  return absl::FailedPreconditionError(absl::StrCat("it has version ", version, ", this spexd knows ",
                                                    kRecordVersion, "; start a newer spexd on this folder"));
}

absl::StatusOr<std::string> HeaderIn(const Json& record) {
  absl::Status status;
  std::string encoded, header;
  Read{record, &status}("header", encoded);
  SPEXD_RETURN_IF_ERROR(status);
  if (!absl::Base64Unescape(encoded, &header)) return absl::DataLossError("header is not in base64");
  return header;
}

}  // namespace

std::string HeaderRecord(const StoredJob& job) {
  Json record = Submitted(job);
  record["header"] = absl::Base64Escape(job.header);
  return Seal(record) + "\n";
}

absl::StatusOr<std::string> HeaderOf(absl::string_view text) {
  SPEXD_ASSIGN_OR_RETURN(const Json record, UnsealVersion(text));
  return HeaderIn(record);
}

absl::Status ParseHeaderRecord(absl::string_view text, StoredJob* job) {
  SPEXD_ASSIGN_OR_RETURN(const Json record, UnsealVersion(text));
  SPEXD_ASSIGN_OR_RETURN(job->header, HeaderIn(record));
  job->header_bytes = static_cast<int64_t>(job->header.size());
  return ReadSubmitted(record, job);
}

std::string StateRecord(const StoredJob& job) {
  Json record;
  VisitState(job, Write{&record});
  std::string text = Seal(record);
  text.resize(kStateBytes - 1, ' ');
  return text + "\n";
}

absl::Status ParseStateRecord(absl::string_view text, StoredJob* job) {
  SPEXD_ASSIGN_OR_RETURN(const Json record, Unseal(text));
  absl::Status status;
  VisitState(*job, Read{record, &status});
  return status;
}

absl::Status ParseStateFile(absl::string_view text, StoredJob* job) {
  StoredJob first = *job, second = *job;
  const absl::Status first_read = ParseStateRecord(text.substr(0, kStateBytes), &first);
  const absl::Status second_read = ParseStateRecord(text.substr(std::min(kStateBytes, text.size())), &second);
  if (!first_read.ok() && !second_read.ok()) return first_read;
  const bool second_counts = !first_read.ok() || (second_read.ok() && second.changes > first.changes);
  *job = std::move(second_counts ? second : first);
  return absl::OkStatus();
}

std::string IndexRecord(const StoredJob& job) {
  Json record = Submitted(job);
  record["header_bytes"] = job.header_bytes;
  VisitState(job, Write{&record});
  return Seal(record) + "\n";
}

absl::Status ParseIndexRecord(absl::string_view text, StoredJob* job) {
  SPEXD_ASSIGN_OR_RETURN(const Json record, UnsealVersion(text));
  absl::Status status;
  const Read read = {record, &status};
  read("header_bytes", job->header_bytes, 0, kMaxBytes);
  VisitState(*job, read);
  SPEXD_RETURN_IF_ERROR(status);
  return ReadSubmitted(record, job);
}

}  // namespace spexd
