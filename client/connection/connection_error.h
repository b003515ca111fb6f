// Messages about failed connections that say what to check.
#ifndef SPEXD_CLIENT_CONNECTION_CONNECTION_ERROR_H_
#define SPEXD_CLIENT_CONNECTION_CONNECTION_ERROR_H_

#include <string>

#include "absl/strings/string_view.h"

namespace spexd::client {

// Returns a message to replace gRPC's own message about a connection that failed or ended. Other messages,
// such as those of servers, are returned unchanged.
std::string ExplainConnectionError(absl::string_view message);

}  // namespace spexd::client

#endif  // SPEXD_CLIENT_CONNECTION_CONNECTION_ERROR_H_
