// The real spexd with identities and TLS, and clients of it.
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

  // Writes the identities file: the token of each name is NAME-token.
  void KnowTokens(const std::vector<std::pair<std::string, std::string>>& names_and_roles,
                  const std::string& more_lines = "");
  void Start(std::vector<std::string> flags);
  void StartWithTls(std::vector<std::string> flags = {});

  // The server by TLS, as the owner of the token ("": without).
  client::ServerAddress By(const std::string& token_of) const;
  // Its HTTP port, for HttpGet.
  std::string Http() const { return absl::StrCat("127.0.0.1:", ports_["http_port"].get<int>()); }
  // The status of one GetCapabilities, or of the connection.
  static absl::Status Ask(const client::ServerAddress& server);
  absl::StatusOr<v1::PsfInfo> LoadPsf(const client::ServerAddress& server, bool pin) const;
  static absl::Status Unload(const client::ServerAddress& server, const std::string& hash);
  // Waits for the audit line of the RPC (its last part) with this decision.
  nlohmann::json AuditLine(const std::string& rpc, const std::string& decision);

  TempFolder folder_;
  Certificates certificates_;
  std::unique_ptr<Process> spexd_;
  nlohmann::json ports_;
};

}  // namespace spexd::testing

#endif  // SPEXD_TESTS_SERVICE_SUPPORT_SECURED_SERVER_H_
