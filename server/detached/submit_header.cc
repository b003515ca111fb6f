#include "server/detached/submit_header.h"

#include <string>

#include "absl/strings/str_format.h"
#include "core/base/status_macros.h"
#include "google/protobuf/io/coded_stream.h"
#include "google/protobuf/io/zero_copy_stream_impl_lite.h"
#include "server/admission/string_limits.h"
#include "server/messages/convert.h"

namespace spexd {
namespace {

constexpr size_t kMostRequestIdBytes = 128;

absl::Status CheckRequestId(const std::string& id) {
  if (!id.empty() && id.size() <= kMostRequestIdBytes) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrFormat("request_id has %d characters, must have 1 to %d", id.size(), kMostRequestIdBytes));
}

std::string BytesOf(const v1::JobHeader& header) {
  std::string bytes;
  google::protobuf::io::StringOutputStream stream(&bytes);
  google::protobuf::io::CodedOutputStream out(&stream);
  out.SetSerializationDeterministic(true);
  header.SerializeToCodedStream(&out);
  out.Trim();
  return bytes;
}

std::string NameOf(const v1::InputSource& source) {
  switch (source.source_case()) {
    case v1::InputSource::kPath:
      return source.path();
    case v1::InputSource::kUpload:
      return source.upload().name();
    case v1::InputSource::kPsfHash:
      return source.psf_hash();
    case v1::InputSource::kRaw:
      return source.raw().name();
    default:
      return "";
  }
}

}  // namespace

absl::Status CheckSubmitHeader(const v1::SubmitHeader& header, double most_keep_seconds) {
  SPEXD_RETURN_IF_ERROR(CheckRequestId(header.request_id()));
  SPEXD_RETURN_IF_ERROR(CheckStrings(header));
  if (header.keep_seconds() > most_keep_seconds) {
    return absl::InvalidArgumentError(
        absl::StrFormat("keep_seconds is %d, must be at most %g", header.keep_seconds(), most_keep_seconds));
  }
  return ToJobSpec(header.job()).status();
}

JobRow RowOf(const v1::SubmitHeader& header, int64_t usual_keep_seconds) {
  JobRow row;
  row.request_id = header.request_id();
  row.image = NameOf(header.job().image());
  row.psf = NameOf(header.job().psf());
  row.header = BytesOf(header.job());
  row.priority = header.job().priority();
  row.keep_seconds = header.keep_seconds() > 0 ? header.keep_seconds() : usual_keep_seconds;
  return row;
}

}  // namespace spexd
