// Whether servers can be reached and used from here.
#ifndef SPEXD_CLIENT_CLI_DOCTOR_SERVER_CHECKS_H_
#define SPEXD_CLIENT_CLI_DOCTOR_SERVER_CHECKS_H_

#include <chrono>
#include <string>
#include <vector>

#include "client/cli/doctor/finding.h"
#include "client/connection/server_address.h"

namespace spexd::cli {

struct ServerQuestions {
  client::ServerAddress server;           // its address names one server at least
  std::vector<std::string> paths;         // of files that jobs would name
  std::chrono::milliseconds limit{5000};  // of each step that waits for the network
};

// Of each server in turn: address, credentials, port, TLS, health, who the caller is and what he may do,
// version, engine, jobs, files and clock. A step that fails ends the checks of its server.
FindingList CheckServers(const ServerQuestions& questions);

}  // namespace spexd::cli

#endif  // SPEXD_CLIENT_CLI_DOCTOR_SERVER_CHECKS_H_
