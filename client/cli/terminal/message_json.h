// Protobuf messages as JSON.
#ifndef SPEXD_CLIENT_CLI_TERMINAL_MESSAGE_JSON_H_
#define SPEXD_CLIENT_CLI_TERMINAL_MESSAGE_JSON_H_

#include <google/protobuf/message.h>

#include <string>

#include "absl/status/statusor.h"

namespace spexd::cli {

// Returns a message of the server at `address` as a JSON object with line breaks. It has "address" and all
// fields under the contract's names. 64-bit integers are numbers, and numbers that are not finite are null.
absl::StatusOr<std::string> ToJson(const std::string& address, const google::protobuf::Message& message);

}  // namespace spexd::cli

#endif  // SPEXD_CLIENT_CLI_TERMINAL_MESSAGE_JSON_H_
