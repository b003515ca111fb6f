#include "client/cli/doctor/server_checks.h"

#include <cstdint>
#include <memory>
#include <optional>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "client/cli/doctor/answer_checks.h"
#include "client/cli/doctor/reach.h"
#include "client/cli/doctor/tls_checks.h"
#include "client/connection/grpc_connection.h"

namespace spexd::cli {
namespace {

using std::chrono::milliseconds;

constexpr char kPortNext[] =
    "check the address and its port (spexd's --listen, 50051 by default), that spexd runs, and firewalls "
    "between";

// A server of the list, with the connection to it, or why the credentials allow none.
struct Server {
  client::Endpoint endpoint;
  absl::StatusOr<std::shared_ptr<client::Connection>> connection;
};

// Checks the port, and TLS if it is used. Returns false if no call can succeed.
bool CheckWay(const client::Endpoint& endpoint, const ServerQuestions& questions, FindingList* findings) {
  const Place place = PlaceOf(endpoint.target);
  if (place.kind == Place::Kind::kOther) return true;  // only gRPC can connect to it
  const auto addresses = AddressesOf(place, questions.limit);
  if (!addresses.ok()) {
    findings->push_back(Bad("address", addresses.status(), ""));
    return false;
  }
  if (place.kind == Place::Kind::kTcp && endpoint.tls_name.empty())
    findings->push_back(Good("address", absl::StrJoin(*addresses, ", ")));
  const absl::StatusOr<Reached> reached = Reach(place, *addresses, questions.limit);
  if (!reached.ok()) {
    findings->push_back(Bad("port", reached.status(), kPortNext));
    return false;
  }
  findings->push_back(Good("port", absl::StrCat(reached->address, " takes connections")));
  if (questions.server.tls_ca.empty()) return true;
  const std::string& name = endpoint.tls_name.empty() ? place.host : endpoint.tls_name;
  for (Finding& finding : CheckTls(reached->socket.get(), name, questions.server, questions.limit))
    findings->push_back(std::move(finding));
  return findings->back().state != FindingState::kError;
}

// Whether a server that does not answer in plain text uses TLS.
bool SpeaksTls(const client::Endpoint& endpoint, milliseconds limit) {
  const Place place = PlaceOf(endpoint.target);
  if (place.kind == Place::Kind::kOther) return false;
  const auto addresses = AddressesOf(place, limit);
  if (!addresses.ok()) return false;
  const absl::StatusOr<Reached> reached = Reach(place, *addresses, limit);
  if (!reached.ok()) return false;
  const auto report = ProbeTls(reached->socket.get(), "", {}, limit);
  return report.ok() && !report->names.empty();
}

Finding NoAnswer(const client::Endpoint& endpoint, const ServerQuestions& questions,
                 const absl::Status& status) {
  if (questions.server.tls_ca.empty() && SpeaksTls(endpoint, questions.limit)) {
    return Bad("tls", absl::Status(status.code(), "the server uses TLS, and --tls-ca is not given"),
               "give the file of the authorities that signed its certificate (--tls-ca or SPEXD_TLS_CA)");
  }
  return Bad("answer", status, "");
}

void CheckServer(const Server& server, const ServerQuestions& questions, FindingList* findings) {
  if (!server.connection.ok()) {
    findings->push_back(
        Bad("credentials", server.connection.status(),
            "check --tls-ca, --tls-cert, --tls-key and --token-file, or their SPEXD_ variables"));
    return;
  }
  if (!CheckWay(server.endpoint, questions, findings)) return;
  client::Connection& connection = **server.connection;
  const auto deadline = [&questions] { return client::Clock::now() + questions.limit; };
  const absl::Status serving = connection.CheckServing(deadline(), {});
  const TimedCapabilities answer = AskCapabilities(&connection, deadline());
  if (absl::IsUnavailable(answer.capabilities.status()) ||
      absl::IsDeadlineExceeded(answer.capabilities.status())) {
    findings->push_back(NoAnswer(server.endpoint, questions, answer.capabilities.status()));
    return;
  }
  if (!CheckCaller(&connection, answer, deadline(), findings)) return;
  findings->push_back(CheckHealth(serving, answer));
  if (answer.capabilities.ok()) CheckAnswer(answer, findings);
  CheckPaths(&connection, answer, questions.paths, questions.limit, findings);
}

// Returns the servers of one part of a list.
std::vector<Server> ConnectTo(const std::string& part, const std::vector<client::Endpoint>& endpoints,
                              const ServerQuestions& questions) {
  client::ServerAddress address = questions.server;
  address.address = part;
  const auto known = [&endpoints](const std::string&, const std::string&) {
    std::vector<std::string> targets;
    for (const client::Endpoint& endpoint : endpoints) targets.push_back(endpoint.target);
    return targets;
  };
  const auto directory = client::OpenDirectory(address, known);
  const auto found = directory.ok() ? (*directory)->Find() : directory.status();
  std::vector<Server> servers;
  for (const client::Endpoint& endpoint : endpoints) {
    // A directory leaves out addresses of a name to which the token must not be sent.
    servers.push_back({endpoint, found.ok()
                                     ? absl::InvalidArgumentError("the token would go there in plain text")
                                     : found.status()});
    if (!found.ok()) continue;
    for (const auto& connection : *found) {
      if (connection->address() == endpoint.target) servers.back().connection = connection;
    }
  }
  return servers;
}

}  // namespace

FindingList CheckServers(const ServerQuestions& questions) {
  FindingList all;
  const auto resolve = [&questions](const std::string& host, const std::string& port) {
    return ResolveWithin(questions.limit, host, port);
  };
  for (const absl::string_view part : absl::StrSplit(questions.server.address, ',')) {
    const std::string name(absl::StripAsciiWhitespace(part));
    const auto endpoints = client::FindServers(name, resolve);
    if (!endpoints.ok()) {
      all.push_back(Bad("address", endpoints.status(), ""));
      all.back().server = name;
      continue;
    }
    for (const Server& server : ConnectTo(name, *endpoints, questions)) {
      FindingList findings;
      CheckServer(server, questions, &findings);
      for (Finding& finding : findings) {
        finding.server =
            server.endpoint.target == name ? name : absl::StrCat(server.endpoint.target, " (", name, ")");
        all.push_back(std::move(finding));
      }
    }
  }
  return all;
}

}  // namespace spexd::cli
