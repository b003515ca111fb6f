// A helper for commands that ask every server of a list.
#ifndef SPEXD_CLIENT_CLI_COMMANDS_EVERY_SERVER_H_
#define SPEXD_CLIENT_CLI_COMMANDS_EVERY_SERVER_H_

#include <functional>
#include <string>

#include "absl/status/statusor.h"
#include "client/connection/connection.h"
#include "client/connection/server_address.h"

namespace spexd::cli {

// Calls `ask` with one server after the other, also after errors, and prints what it returns: as it is or,
// with `json`, as the elements of one array. Returns the highest exit code.
int AskEveryServer(const client::ServerAddress& servers, bool json,
                   const std::function<absl::StatusOr<std::string>(client::Connection*)>& ask);

}  // namespace spexd::cli

#endif  // SPEXD_CLIENT_CLI_COMMANDS_EVERY_SERVER_H_
