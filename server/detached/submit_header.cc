#include "server/detached/submit_header.h"

#include <string>

#include "absl/strings/str_format.h"
#include "core/base/status_macros.h"
#include "google/protobuf/io/coded_stream.h"
#include "google/protobuf/io/zero_copy_stream_impl_lite.h"
#include "server/admission/string_limits.h"
#include "server/inputs/job_inputs.h"
#include "server/messages/convert.h"

namespace spexd {
namespace {

constexpr size_t kMaxRequestIdBytes = 128;

absl::Status CheckRequestId(const std::string& id) {
  if (!id.empty() && id.size() <= kMaxRequestIdBytes) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrFormat("request_id has %d characters, must have 1 to %d", id.size(), kMaxRequestIdBytes));
}

// Serialises the header deterministically. Unknown fields are discarded, because their size has no limit.
std::string BytesOf(v1::JobHeader header) {
  header.DiscardUnknownFields();
  std::string bytes;
  google::protobuf::io::StringOutputStream stream(&bytes);
  google::protobuf::io::CodedOutputStream out(&stream);
  out.SetSerializationDeterministic(true);
  header.SerializeToCodedStream(&out);
  out.Trim();
  return bytes;
}

}  // namespace

absl::Status CheckSubmitHeader(const v1::SubmitHeader& header, double max_keep_seconds) {
  SPEXD_RETURN_IF_ERROR(CheckRequestId(header.request_id()));
  SPEXD_RETURN_IF_ERROR(CheckStrings(header));
  if (header.keep_seconds() > max_keep_seconds) {
    return absl::InvalidArgumentError(
        absl::StrFormat("keep_seconds is %d, must be at most %g", header.keep_seconds(), max_keep_seconds));
  }
  return ToJobSpec(header.job()).status();
}

StoredJob JobOf(const v1::SubmitHeader& header, int64_t default_keep_seconds) {
  StoredJob job;
  job.request_id = header.request_id();
  job.image = NameOf(header.job().image());
  job.psf = NameOf(header.job().psf());
  job.header = BytesOf(header.job());
  job.priority = header.job().priority();
  job.keep_seconds = header.keep_seconds() > 0 ? header.keep_seconds() : default_keep_seconds;
  return job;
}

}  // namespace spexd
