// The real spexd with identities and TLS, and its clients.
#ifndef SPEXD_TESTS_SERVICE_SUPPORT_SECURED_SERVER_H_
#define SPEXD_TESTS_SERVICE_SUPPORT_SECURED_SERVER_H_

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "client/connection/grpc_connection.h"
#include "nlohmann/json.hpp"
#include "tests/service/support/certificates.h"
#include "tests/support/process.h"

namespace spexd::testing {

class SecuredServerTest : public ::testing::Test {
 protected:
  SecuredServerTest();

  // Writes the identities file. The token of each name is NAME-token.
  void KnowTokens(const std::vector<std::pair<std::string, std::string>>& names_and_roles,
                  const std::string& more_lines = "");
  void Start(std::vector<std::string> flags);
  void StartWithTls(std::vector<std::string> flags = {});

  // Returns the server's TLS address with the credentials of this token's owner ("": none).
  client::ServerAddress By(const std::string& token_of) const;
  // Returns its HTTP port, for HttpGet.
  std::string Http() const { return absl::StrCat("127.0.0.1:", ports_["http_port"].get<int>()); }
  // Returns the status of one GetCapabilities, or of the connection.
  static absl::Status Ask(const client::ServerAddress& server);
  absl::StatusOr<v1::PsfInfo> LoadPsf(const client::ServerAddress& server, bool pin) const;
  static absl::Status Unload(const client::ServerAddress& server, const std::string& hash);
  // Waits for the audit line of an RPC (given by the last part of its name) with this decision.
  nlohmann::json AuditLine(const std::string& rpc, const std::string& decision);

  TempFolder folder_;
  Certificates certificates_;
  std::unique_ptr<Process> spexd_;
  nlohmann::json ports_;
};

}  // namespace spexd::testing

#endif  // SPEXD_TESTS_SERVICE_SUPPORT_SECURED_SERVER_H_
