#include "tests/service/support/secured_server.h"

#include <filesystem>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "core/base/digest/sha256.h"
#include "core/base/status_macros.h"
#include "tests/service/support/inputs.h"
#include "tests/service/support/server_command.h"

namespace spexd::testing {
namespace {

// A deadline after which a waiting test has failed.
client::Connection::Deadline Soon() { return client::Clock::now() + std::chrono::seconds(60); }

}  // namespace

SecuredServerTest::SecuredServerTest() {
  WritePsfFile(folder_ / "psf.fits");
  certificates_.MakeAuthority("authority");
  certificates_.Make("server", "authority", "/CN=localhost");
}

void SecuredServerTest::KnowTokens(const std::vector<std::pair<std::string, std::string>>& names_and_roles,
                                   const std::string& more_lines) {
  std::string lines = more_lines;
  for (const auto& [name, roles] : names_and_roles) {
    const std::string token = name + "-token";
    absl::StrAppend(&lines, name, " ", roles, " token sha256:", Sha256Hex(token), "\n");
    WriteBytes(folder_ / token, token + "\n");
  }
  WriteBytes(folder_ / "identities.new", lines);
  std::filesystem::rename(folder_ / "identities.new", folder_ / "identities");
}

void SecuredServerTest::Start(std::vector<std::string> flags) {
  flags.insert(flags.begin(), {"--http", "127.0.0.1:0"});
  spexd_ = std::make_unique<Process>(ServerCommand(folder_, flags));
  ASSERT_TRUE(spexd_->WaitForLine("\"started\"")) << spexd_->output();
  ports_ = nlohmann::json::parse(ReadBytes(folder_ / "ports.json"));
}

void SecuredServerTest::StartWithTls(std::vector<std::string> flags) {
  const std::vector<std::string> tls = {"--listen",          "127.0.0.1:0",
                                        "--tls-certificate", certificates_.pem("server"),
                                        "--tls-private-key", certificates_.key("server")};
  flags.insert(flags.begin(), tls.begin(), tls.end());
  Start(flags);
}

client::ServerAddress SecuredServerTest::By(const std::string& token_of) const {
  client::ServerAddress server{.address = ports_["grpc"].get<std::string>()};
  if (!absl::StartsWith(server.address, "unix:")) server.tls_ca = certificates_.pem("authority");
  if (!token_of.empty()) server.token_file = folder_ / (token_of + "-token");
  return server;
}

absl::Status SecuredServerTest::Ask(const client::ServerAddress& server) {
  SPEXD_ASSIGN_OR_RETURN(const auto connection, client::Connect(server));
  return connection->GetCapabilities(Soon()).status();
}

absl::StatusOr<v1::PsfInfo> SecuredServerTest::LoadPsf(const client::ServerAddress& server, bool pin) const {
  SPEXD_ASSIGN_OR_RETURN(const auto connection, client::Connect(server));
  v1::LoadPsfHeader header;
  header.set_path(folder_ / "psf.fits");
  header.set_pin(pin);
  return connection->LoadPsf(header, {}, Soon());
}

absl::Status SecuredServerTest::Unload(const client::ServerAddress& server, const std::string& hash) {
  SPEXD_ASSIGN_OR_RETURN(const auto connection, client::Connect(server));
  return connection->UnloadPsf(hash, v1::WARM_KIND_PSF, Soon());
}

nlohmann::json SecuredServerTest::AuditLine(const std::string& rpc, const std::string& decision) {
  std::string line;
  while (spexd_->WaitForLine("\"audit\"", &line)) {
    nlohmann::json fields = nlohmann::json::parse(line);
    if (fields["decision"] == decision && absl::EndsWith(fields["rpc"].get<std::string>(), "/" + rpc))
      return fields;
  }
  return {};
}

}  // namespace spexd::testing
