// The flags that select a server and how to connect to it.
#ifndef SPEXD_CLIENT_CLI_FLAGS_SERVER_FLAGS_H_
#define SPEXD_CLIENT_CLI_FLAGS_SERVER_FLAGS_H_

#include <CLI/CLI.hpp>
#include <string>

#include "client/connection/grpc_connection.h"

namespace spexd::cli {

// Adds --server, --tls-ca, --tls-cert, --tls-key and --token-file to `group`. The environment variables
// SPEXD_SERVER, SPEXD_TLS_CA, ... replace flags that are not given; TRACEPARENT sets the trace. `help` is the
// help of --server, whose default is the address in `server`.
void AddServerFlags(CLI::App* command, const std::string& help, const std::string& group,
                    client::ServerAddress* server);

}  // namespace spexd::cli

#endif  // SPEXD_CLIENT_CLI_FLAGS_SERVER_FLAGS_H_
