#include "server/base/retry.h"

#include <string>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/cord.h"
#include "absl/strings/match.h"
#include "google/protobuf/any.pb.h"
#include "spexd/v1/rpc_details.pb.h"

namespace spexd {
namespace {

constexpr char kRetryInfoUrl[] = "type.googleapis.com/google.rpc.RetryInfo";
// The prefix of the URLs of payloads that stay on the server.
constexpr char kOwnUrls[] = "spexd/";
constexpr char kReasonUrl[] = "spexd/reason";
constexpr char kConcealedUrl[] = "spexd/concealed";

std::string ToString(const absl::Cord& cord) { return std::string(cord); }

// Returns the text with other characters replaced. The details are a proto3 string, which must be UTF-8; the
// message itself is sent unchanged beside them.
std::string AsciiOnly(absl::string_view text) {
  std::string ascii(text);
  for (char& c : ascii) {
    if (!absl::ascii_isascii(static_cast<unsigned char>(c))) c = '?';
  }
  return ascii;
}

}  // namespace

absl::Status WithRetryDelay(absl::Status status, std::chrono::milliseconds delay) {
  v1::RetryInfo info;
  info.mutable_retry_delay()->set_seconds(delay.count() / 1000);
  info.mutable_retry_delay()->set_nanos(static_cast<int32_t>(delay.count() % 1000) * 1000000);
  status.SetPayload(kRetryInfoUrl, absl::Cord(info.SerializeAsString()));
  return status;
}

std::optional<std::chrono::milliseconds> RetryDelayOf(const absl::Status& status) {
  const absl::optional<absl::Cord> payload = status.GetPayload(kRetryInfoUrl);
  v1::RetryInfo info;
  if (!payload.has_value() || !info.ParseFromString(ToString(*payload))) return std::nullopt;
  return std::chrono::milliseconds(info.retry_delay().seconds() * 1000 +
                                   info.retry_delay().nanos() / 1000000);
}

absl::Status Refuse(absl::Status status, const std::string& reason,
                    std::optional<std::chrono::milliseconds> delay) {
  status.SetPayload(kReasonUrl, absl::Cord(reason));
  return delay.has_value() ? WithRetryDelay(std::move(status), *delay) : status;
}

std::string ReasonOf(const absl::Status& status) {
  const absl::optional<absl::Cord> reason = status.GetPayload(kReasonUrl);
  return reason.has_value() ? ToString(*reason) : "";
}

absl::Status Conceal(absl::Status shown, const std::string& why) {
  shown.SetPayload(kConcealedUrl, absl::Cord(why));
  return shown;
}

absl::Status Revealed(const absl::Status& status) {
  const absl::optional<absl::Cord> why = status.GetPayload(kConcealedUrl);
  return why.has_value() ? absl::PermissionDeniedError(ToString(*why)) : status;
}

absl::Status RefuseWhileDraining() {
  return Refuse(absl::UnavailableError("the server is draining; use another"), "draining");
}

grpc::Status ToGrpcStatus(const absl::Status& status) {
  if (status.ok()) return grpc::Status::OK;
  v1::RpcStatus details;
  details.set_code(static_cast<int>(status.code()));
  details.set_message(AsciiOnly(status.message()));
  status.ForEachPayload([&details](absl::string_view url, const absl::Cord& payload) {
    if (absl::StartsWith(url, kOwnUrls)) return;
    google::protobuf::Any* any = details.add_details();
    any->set_type_url(std::string(url));
    any->set_value(ToString(payload));
  });
  return grpc::Status(static_cast<grpc::StatusCode>(status.code()), std::string(status.message()),
                      details.details().empty() ? std::string() : details.SerializeAsString());
}

std::string CodeLabel(absl::StatusCode code) { return absl::AsciiStrToLower(absl::StatusCodeToString(code)); }

}  // namespace spexd
