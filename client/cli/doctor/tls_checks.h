// The checks of TLS between this machine and a server.
#ifndef SPEXD_CLIENT_CLI_DOCTOR_TLS_CHECKS_H_
#define SPEXD_CLIENT_CLI_DOCTOR_TLS_CHECKS_H_

#include <chrono>
#include <string>

#include "client/cli/doctor/finding.h"
#include "client/cli/doctor/tls_probe.h"
#include "client/connection/server_address.h"

namespace spexd::cli {

// Checks the certificates of both sides. An error, if any, comes last. See ProbeTls for the arguments.
FindingList CheckTls(int socket, const std::string& name, const client::ServerAddress& credentials,
                     std::chrono::milliseconds limit);

}  // namespace spexd::cli

#endif  // SPEXD_CLIENT_CLI_DOCTOR_TLS_CHECKS_H_
