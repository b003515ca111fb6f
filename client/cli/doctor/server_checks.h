// The checks of servers: whether they can be reached and used from this machine.
#ifndef SPEXD_CLIENT_CLI_DOCTOR_SERVER_CHECKS_H_
#define SPEXD_CLIENT_CLI_DOCTOR_SERVER_CHECKS_H_

#include <chrono>
#include <string>
#include <vector>

#include "client/cli/doctor/finding.h"
#include "client/connection/server_address.h"

namespace spexd::cli {

struct ServerQuestions {
  client::ServerAddress server;           // the address names at least one server
  std::vector<std::string> paths;         // files that jobs would name
  std::chrono::milliseconds limit{5000};  // time limit of each step that waits for the network
};

// Checks each server in turn: address, credentials, port, TLS, health, the caller's identity and roles,
// version, engine, jobs, files and clock. A step that fails ends the checks of its server.
FindingList CheckServers(const ServerQuestions& questions);

}  // namespace spexd::cli

#endif  // SPEXD_CLIENT_CLI_DOCTOR_SERVER_CHECKS_H_
