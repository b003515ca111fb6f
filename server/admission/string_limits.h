// Limits of the strings that clients send: names and hashes go to logs, listings and files' headers.
#ifndef SPEXD_SERVER_ADMISSION_STRING_LIMITS_H_
#define SPEXD_SERVER_ADMISSION_STRING_LIMITS_H_

#include "absl/status/status.h"
#include "google/protobuf/message.h"

namespace spexd {

inline constexpr size_t kMaxStringBytes = 1024;

// InvalidArgument names the first string field, of the message or one within it, that exceeds
// kMaxStringBytes or has control characters, which would command the terminals of those who list jobs.
// Fields of type `bytes` have limits of their own.
absl::Status CheckStrings(const google::protobuf::Message& message);

}  // namespace spexd

#endif  // SPEXD_SERVER_ADMISSION_STRING_LIMITS_H_
