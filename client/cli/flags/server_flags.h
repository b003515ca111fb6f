// The flags that say which server to use, and how to reach it.
#ifndef SPEXD_CLIENT_CLI_FLAGS_SERVER_FLAGS_H_
#define SPEXD_CLIENT_CLI_FLAGS_SERVER_FLAGS_H_

#include <CLI/CLI.hpp>
#include <string>

#include "client/connection/grpc_connection.h"

namespace spexd::cli {

// Adds --server, --tls-ca, --tls-cert, --tls-key and --token-file to the group; what is not given is taken
// from the environment: SPEXD_SERVER, SPEXD_TLS_CA, ... So is the trace, from TRACEPARENT. `help` is that of
// --server, whose default is the address in `server`.
void AddServerFlags(CLI::App* command, const std::string& help, const std::string& group,
                    client::ServerAddress* server);

}  // namespace spexd::cli

#endif  // SPEXD_CLIENT_CLI_FLAGS_SERVER_FLAGS_H_
