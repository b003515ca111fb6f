// Messages of the contract as JSON.
#ifndef SPEXD_CLIENT_CLI_TERMINAL_MESSAGE_JSON_H_
#define SPEXD_CLIENT_CLI_TERMINAL_MESSAGE_JSON_H_

#include <google/protobuf/message.h>

#include <string>

#include "absl/status/statusor.h"

namespace spexd::cli {

// What the server at `address` said, as an object of JSON with line breaks: "address", and all fields with
// the contract's names; numbers are numbers, also those of 64 bits; those that are not finite are null.
absl::StatusOr<std::string> ToJson(const std::string& address, const google::protobuf::Message& message);

}  // namespace spexd::cli

#endif  // SPEXD_CLIENT_CLI_TERMINAL_MESSAGE_JSON_H_
