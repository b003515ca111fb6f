// Errors of connections, in words that tell what to check.
#ifndef SPEXD_CLIENT_CONNECTION_CONNECTION_ERROR_H_
#define SPEXD_CLIENT_CONNECTION_CONNECTION_ERROR_H_

#include <string>

#include "absl/strings/string_view.h"

namespace spexd::client {

// What to say instead of gRPC's own message about a connection that failed or ended. Other messages, as those
// of servers, stay as they are.
std::string ExplainConnectionError(absl::string_view message);

}  // namespace spexd::client

#endif  // SPEXD_CLIENT_CONNECTION_CONNECTION_ERROR_H_
