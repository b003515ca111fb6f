// TLS of the real program: certificates of servers and clients that are wrong, damaged, expired, revoked and
// replaced.
#include <signal.h>

#include <chrono>
#include <filesystem>
#include <thread>

#include "grpcpp/grpcpp.h"
#include "spexd/v1/extraction.grpc.pb.h"
#include "tests/service/support/inputs.h"
#include "tests/service/support/scrape.h"
#include "tests/service/support/secured_server.h"
#include "tests/support/eventually.h"
#include "tests/support/matchers.h"
#include "tests/support/run_command.h"

namespace spexd::testing {
namespace {

class CertificatesTest : public SecuredServerTest {
 protected:
  client::ServerAddress WithCertificate(const std::string& name) const {
    client::ServerAddress server = By("");
    server.tls_cert = certificates_.pem(name);
    server.tls_key = certificates_.key(name);
    return server;
  }
  std::shared_ptr<grpc::Channel> TlsChannel(const std::string& authority) const {
    grpc::SslCredentialsOptions tls;
    tls.pem_root_certs = ReadBytes(certificates_.pem(authority));
    grpc::ChannelArguments own;
    own.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
    return grpc::CreateCustomChannel(ports_["grpc"].get<std::string>(), grpc::SslCredentials(tls), own);
  }
};

TEST_F(CertificatesTest, ClientCertificatesAreIdentities) {
  certificates_.Make("worker", "authority", "/O=Lab/CN=worker");
  certificates_.Make("unknown", "authority", "/O=Lab/CN=unknown");
  certificates_.Make("expired", "authority", "/O=Lab/CN=worker", -1);
  certificates_.MakeAuthority("foreign");
  certificates_.Make("impostor", "foreign", "/O=Lab/CN=worker");
  KnowTokens({}, "worker read certificate CN=worker,O=Lab\n");
  StartWithTls({"--tls-client-ca", certificates_.pem("authority"), "--identities", folder_ / "identities"});
  EXPECT_TRUE(Ask(WithCertificate("worker")).ok()) << Ask(WithCertificate("worker"));
  const nlohmann::json allowed = AuditLine("GetCapabilities", "allowed");
  EXPECT_EQ(allowed["identity"], "worker");
  EXPECT_EQ(allowed["via"], "certificate");
  const absl::Status unknown = Ask(WithCertificate("unknown"));
  EXPECT_THAT(unknown,
              StatusIs(absl::StatusCode::kUnauthenticated, HasSubstr("\"CN=unknown,O=Lab\" is not known")));
  for (const char* refused : {"expired", "impostor"}) {
    EXPECT_TRUE(absl::IsUnavailable(Ask(WithCertificate(refused)))) << refused;
  }
  EXPECT_TRUE(absl::IsUnavailable(Ask(By(""))));
  EXPECT_TRUE(spexd_->WaitForLine("\"grpc\""));  // the log says why
  EXPECT_EQ(HttpGet(Http(), "/livez").first, 200);
}

TEST_F(CertificatesTest, PlainTextAndOldTlsAreRefused) {
  StartWithTls();
  client::ServerAddress plain = By("");
  plain.tls_ca = "";
  EXPECT_TRUE(absl::IsUnavailable(Ask(plain)));
  EXPECT_TRUE(Ask(By("")).ok());
  const auto greets = [this](const std::string& version) {
    return RunCommand({"openssl", "s_client", "-connect", ports_["grpc"].get<std::string>(), version, "-alpn",
                       "h2", "-cipher", "DEFAULT@SECLEVEL=0"})
               .exit_code == 0;
  };
  EXPECT_FALSE(greets("-tls1_1"));
  EXPECT_TRUE(greets("-tls1_2"));
}

TEST_F(CertificatesTest, NewConnectionsGetTheNewCertificateWhileAStreamRuns) {
  certificates_.MakeAuthority("next authority");
  certificates_.Make("next", "next authority", "/CN=localhost");
  StartWithTls();
  const auto stub = v1::Extraction::NewStub(TlsChannel("authority"));
  grpc::ClientContext context;
  const auto stream = stub->Extract(&context);
  v1::ExtractRequest request;
  request.mutable_header()->mutable_image()->mutable_raw()->set_rows(kRows);
  request.mutable_header()->mutable_image()->mutable_raw()->set_columns(kColumns);
  request.mutable_header()->mutable_psf()->set_path(folder_ / "psf.fits");
  v1::ExtractEvent event;
  ASSERT_TRUE(stream->Write(request) && stream->Read(&event));

  certificates_.Replace("server", "next");
  const auto connects = [this](const std::string& authority, std::chrono::seconds patience) {
    return TlsChannel(authority)->WaitForConnected(std::chrono::system_clock::now() + patience);
  };
  // The server checks its files once a second, and the channel tries again.
  EXPECT_TRUE(connects("next authority", std::chrono::minutes(1)));
  EXPECT_FALSE(connects("authority", std::chrono::seconds(1)));

  request.mutable_chunk()->set_input(v1::INPUT_IMAGE);
  request.mutable_chunk()->set_payload(RawArrays(kRows, kColumns));
  EXPECT_TRUE(stream->Write(request));
  request.mutable_end()->set_input(v1::INPUT_IMAGE);
  EXPECT_TRUE(stream->Write(request));
  stream->WritesDone();
  while (stream->Read(&event)) continue;
  EXPECT_TRUE(stream->Finish().ok());
}

TEST_F(CertificatesTest, ARevokedCertificateIsNotKnownOnItsOpenConnectionEither) {
  certificates_.Make("worker", "authority", "/O=Lab/CN=worker");
  const std::string other = "other read certificate CN=other,O=Lab\n";
  KnowTokens({}, other + "worker read certificate CN=worker,O=Lab\n");
  StartWithTls({"--tls-client-ca", certificates_.pem("authority"), "--identities", folder_ / "identities"});
  const auto open = *client::Connect(WithCertificate("worker"));
  const auto soon = client::Clock::now() + std::chrono::seconds(60);
  ASSERT_TRUE(open->GetCapabilities(soon).ok());
  KnowTokens({}, other);
  spexd_->Signal(SIGHUP);
  ASSERT_TRUE(spexd_->WaitForLine("\"reloaded\""));
  EXPECT_EQ(ScrapedMetric(Http(), "spexd_connections"), 1);
  EXPECT_TRUE(absl::IsUnauthenticated(open->GetCapabilities(soon).status()));
  EXPECT_EQ(ScrapedMetric(Http(), "spexd_connections"), 1) << "the connection is still the first one";
  EXPECT_TRUE(absl::IsUnauthenticated(Ask(WithCertificate("worker"))));
}

TEST_F(CertificatesTest, AReplacedAuthorityEndsTheCertificatesThatItSigned) {
  certificates_.MakeAuthority("clients");
  certificates_.MakeAuthority("next clients");
  certificates_.Make("old", "clients", "/CN=worker");
  certificates_.Make("new", "next clients", "/CN=worker");
  StartWithTls({"--tls-client-ca", certificates_.pem("clients")});
  EXPECT_TRUE(Ask(WithCertificate("old")).ok()) << Ask(WithCertificate("old"));
  EXPECT_TRUE(absl::IsUnavailable(Ask(WithCertificate("new"))));
  certificates_.Replace("clients", "next clients");
  ASSERT_TRUE(spexd_->WaitForLine("\"certificates_renewed\""));
  EXPECT_TRUE(absl::IsUnavailable(Ask(WithCertificate("old"))));
  EXPECT_TRUE(Ask(WithCertificate("new")).ok()) << Ask(WithCertificate("new"));
}

TEST_F(CertificatesTest, TheExpiryOfTheCertificateInForceIsAMetric) {
  certificates_.Make("next", "authority", "/CN=localhost", 30);
  StartWithTls();
  const auto days_left = [this] {
    const double expiry = ScrapedMetric(Http(), "spexd_certificate_expiry_seconds");
    return (expiry - static_cast<double>(client::Clock::to_time_t(client::Clock::now()))) / 86400;
  };
  EXPECT_NEAR(days_left(), 2, 0.1);
  certificates_.Replace("server", "next");
  ASSERT_TRUE(spexd_->WaitForLine("\"certificates_renewed\""));
  EXPECT_NEAR(days_left(), 30, 0.1);
}

TEST_F(CertificatesTest, AnExpiredServerCertificateIsWhatTheClientNames) {
  certificates_.Make("server", "authority", "/CN=localhost", -1);
  StartWithTls();
  const absl::Status expired = Ask(By(""));
  EXPECT_THAT(expired,
              StatusIs(absl::StatusCode::kUnavailable, HasSubstr("the server's certificate is expired")));
}

TEST_F(CertificatesTest, DamageIsFoundInEachPartOfAFileAndNamed) {
  const std::string pem = certificates_.pem("server"), key = certificates_.key("server"),
                    authority = certificates_.pem("authority");
  const std::string good_pem = ReadBytes(pem), good_key = ReadBytes(key),
                    good_authority = ReadBytes(authority);
  // A chain: the authority's certificate after the server's.
  WriteBytes(folder_ / "pem", good_pem + "the authority:\n" + good_authority);
  WriteBytes(folder_ / "key", good_key);
  WriteBytes(folder_ / "clients", good_authority + good_pem);
  const auto check = [this] {
    return RunCommand({BinFolder() + "/spexd", "--check-config", "--tls-certificate", folder_ / "pem",
                       "--tls-private-key", folder_ / "key", "--tls-client-ca", folder_ / "clients"});
  };
  ASSERT_EQ(check().exit_code, 0) << check().output;

  const std::string nul(1, '\0');
  const std::string body = good_authority.substr(good_authority.find('\n'));  // the tag, "MII..."
  std::string not_base64 = good_authority, not_asn1 = good_authority;
  not_base64[good_authority.size() / 2] = '!';
  not_asn1[good_authority.find('\n') + 1] = 'A';  // of the tag, "MII..."
  struct Damage {
    const char* file;
    std::string bytes, reason;
  };
  const std::string cut = "a PEM block is damaged or cut";
  const std::vector<Damage> damages = {
      {"pem", nul + good_pem, "contains a NUL byte"},
      {"pem", good_pem + nul + good_authority, "contains a NUL byte"},
      {"key", good_key + nul, "contains a NUL byte"},
      {"clients", nul + good_authority, "contains a NUL byte"},
      {"pem", good_pem + not_base64, "bad base64 decode"},
      {"pem", good_pem + not_asn1, "ASN1"},
      {"pem", good_pem + good_authority.substr(0, good_authority.size() / 2), "bad end line"},
      {"pem", good_pem + "-----BEGIN CERTIFICATE", cut},
      {"pem", good_pem + "-----BEGIN CERTIFICATE----" + body, cut},
      {"pem", good_pem + "garbage-----BEGIN CERTIFICATE-----" + body, cut},
      {"pem", good_pem + "  " + good_authority, cut},
      {"key", good_key + "-----BEGIN", cut},
      {"clients", good_authority + "-----BEGIN CERTIFICATE-----", "bad end line"},
      {"clients", good_authority + "-----BEGIN CERTIFICATE-----\n-----END CERTIFICATE-----\n", "is damaged"},
      {"clients", good_authority + not_base64, "bad base64 decode"}};
  for (const Damage& damage : damages) {
    const std::string file = folder_ / damage.file, good = ReadBytes(file);
    WriteBytes(file, damage.bytes);
    const CommandResult checked = check();
    EXPECT_THAT(checked, ExitsWith(2, HasSubstr("\"" + file + "\": ")));
    EXPECT_THAT(checked.output, HasSubstr(damage.reason)) << damage.bytes;
    WriteBytes(file, good);
  }
  EXPECT_EQ(check().exit_code, 0);
}

TEST_F(CertificatesTest, FilesThatAreNotGoodLeaveTheOldCertificateInForce) {
  certificates_.MakeAuthority("next authority");
  certificates_.Make("next", "next authority", "/CN=localhost");
  StartWithTls({"--tls-client-ca", certificates_.pem("authority")});
  certificates_.Make("worker", "authority", "/CN=worker");
  const std::string pem = certificates_.pem("server"), key = certificates_.key("server"),
                    authority = certificates_.pem("authority");
  const std::string good_pem = ReadBytes(pem), good_key = ReadBytes(key),
                    good_authority = ReadBytes(authority);
  const auto metric = [this] { return HttpGet(Http(), "/metrics").second; };
  // Replaces a file atomically, so that the server never sees half of it.
  const auto replace = [this](const std::string& file, const std::string& bytes) {
    WriteBytes(folder_ / "next.pem", bytes);
    std::filesystem::rename(folder_ / "next.pem", file);
  };
  WriteBytes(folder_ / "ca.pem", good_authority);  // for the clients, whatever the server's file contains
  client::ServerAddress worker = WithCertificate("worker");
  worker.tls_ca = folder_ / "ca.pem";
  const std::string next_pem = ReadBytes(certificates_.pem("next"));
  const std::vector<std::pair<std::string, std::string>> bad = {
      {pem, ""},       {pem, "no certificate"},
      {key, ""},       {pem, good_pem.substr(0, good_pem.size() / 2)},
      {key, "no key"}, {pem, next_pem},
      {authority, ""}, {pem, std::string(1, '\0') + good_pem}};
  for (const auto& [file, bytes] : bad) {
    replace(file, bytes);
    std::string line;
    ASSERT_TRUE(spexd_->WaitForLine("\"certificates_refused\"", &line));
    EXPECT_THAT(line, HasSubstr(file == pem && bytes == next_pem ? key : file));
    EXPECT_TRUE(Ask(worker).ok()) << line << Ask(worker);
    EXPECT_THAT(metric(), HasSubstr("spexd_certificates_refused 1"));
    replace(file, file == pem ? good_pem : file == key ? good_key : good_authority);
    ASSERT_TRUE(
        Eventually([&] { return metric().find("spexd_certificates_refused 0") != std::string::npos; }));
  }
  std::filesystem::remove(pem);
  ASSERT_TRUE(spexd_->WaitForLine("\"certificates_refused\""));
  EXPECT_TRUE(Ask(worker).ok()) << Ask(worker);
  certificates_.Replace("server", "next");
  ASSERT_TRUE(spexd_->WaitForLine("\"certificates_renewed\""));
  EXPECT_FALSE(Ask(worker).ok());
  worker.tls_ca = certificates_.pem("next authority");
  EXPECT_TRUE(Ask(worker).ok()) << Ask(worker);
}

}  // namespace
}  // namespace spexd::testing
