// The limits of strings in clients' messages. Names and hashes appear in logs, listings and file headers.
#ifndef SPEXD_SERVER_ADMISSION_STRING_LIMITS_H_
#define SPEXD_SERVER_ADMISSION_STRING_LIMITS_H_

#include "absl/status/status.h"
#include "google/protobuf/message.h"

namespace spexd {

inline constexpr size_t kMaxStringBytes = 1024;

// Checks the string fields of a message and of the messages in it. InvalidArgument names the first one that
// exceeds kMaxStringBytes or has control characters, which could control the terminals of users who list
// jobs. Fields of type `bytes` have limits of their own.
absl::Status CheckStrings(const google::protobuf::Message& message);

}  // namespace spexd

#endif  // SPEXD_SERVER_ADMISSION_STRING_LIMITS_H_
