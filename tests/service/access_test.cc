// Who may do what, with the real program: tokens, certificates, users of a Unix socket, and reloading.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <thread>

#include "absl/strings/str_cat.h"
#include "grpcpp/generic/generic_stub.h"
#include "grpcpp/grpcpp.h"
#include "server/security/identity.h"
#include "spexd/v1/accumulators.grpc.pb.h"
#include "spexd/v1/extraction.grpc.pb.h"
#include "spexd/v1/jobs.grpc.pb.h"
#include "spexd/v1/registry.grpc.pb.h"
#include "tests/service/support/inputs.h"
#include "tests/service/support/scrape.h"
#include "tests/service/support/secured_server.h"
#include "tests/support/run_command.h"

namespace spexd::testing {
namespace {

using ::testing::HasSubstr;

class AccessTest : public SecuredServerTest {
 protected:
  // All services of the contract, for tests that hold for each RPC.
  static std::vector<const google::protobuf::MethodDescriptor*> AllRpcs() {
    std::vector<const google::protobuf::MethodDescriptor*> rpcs;
    for (const auto* file :
         {v1::Capabilities::descriptor()->file(), v1::PsfInfo::descriptor()->file(),
          v1::JobRecord::descriptor()->file(), v1::AccumulatorRecord::descriptor()->file()}) {
      for (int s = 0; s < file->service_count(); ++s) {
        for (int m = 0; m < file->service(s)->method_count(); ++m)
          rpcs.push_back(file->service(s)->method(m));
      }
    }
    return rpcs;
  }
  static std::string PathOf(const google::protobuf::MethodDescriptor& rpc) {
    return absl::StrCat(rpc.service()->full_name(), "/", rpc.name());
  }
  // Sends one empty message.
  static grpc::Status Call(const std::shared_ptr<grpc::Channel>& channel, const std::string& rpc,
                           const std::string& token) {
    grpc::GenericStub stub(channel);
    grpc::ClientContext context;
    if (!token.empty()) context.AddMetadata("authorization", "Bearer " + token);
    grpc::CompletionQueue queue;
    grpc::Slice slice("");
    grpc::ByteBuffer message(&slice, 1), response;
    grpc::Status status;
    const auto call = stub.PrepareUnaryCall(&context, "/" + rpc, message, &queue);
    call->StartCall();
    call->Finish(&response, &status, &queue);
    void* tag = nullptr;
    bool ok = false;
    queue.Next(&tag, &ok);
    return status;
  }
  std::string Http() const { return absl::StrCat("127.0.0.1:", ports_["http_port"].get<int>()); }
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

TEST_F(AccessTest, EveryRpcAsksWhoCallsAndHasARole) {
  KnowTokens({{"operator", "administer"}});
  Start({"--listen", "127.0.0.1:0", "--identities", folder_ / "identities"});
  const auto channel =
      grpc::CreateChannel(ports_["grpc"].get<std::string>(), grpc::InsecureChannelCredentials());
  ASSERT_EQ(AllRpcs().size(), 15u);
  for (const auto* rpc : AllRpcs()) {
    EXPECT_EQ(Call(channel, PathOf(*rpc), "").error_code(), grpc::StatusCode::UNAUTHENTICATED)
        << PathOf(*rpc);
    EXPECT_EQ(Call(channel, PathOf(*rpc), "guess").error_code(), grpc::StatusCode::UNAUTHENTICATED);
    const grpc::StatusCode known = Call(channel, PathOf(*rpc), "operator-token").error_code();
    EXPECT_NE(known, grpc::StatusCode::UNAUTHENTICATED) << PathOf(*rpc);
    EXPECT_NE(known, grpc::StatusCode::PERMISSION_DENIED) << PathOf(*rpc);
  }
  grpc::ClientContext twice;
  for (int k = 0; k < 2; ++k) twice.AddMetadata("authorization", "Bearer operator-token");
  v1::Capabilities status;
  EXPECT_THAT(v1::Extraction::NewStub(channel)->GetCapabilities(&twice, {}, &status).error_message(),
              HasSubstr("must be \"Bearer TOKEN\", once"));
}

TEST_F(AccessTest, TokensGiveRolesOverTls) {
  KnowTokens({{"viewer", "read"}, {"worker", "submit"}, {"stranger", "read"}});
  KnowTokens({{"viewer", "read"}, {"worker", "submit"}});  // the stranger has a token, which is not known
  StartWithTls({"--identities", folder_ / "identities"});
  EXPECT_TRUE(Ask(By("viewer")).ok()) << Ask(By("viewer"));
  const absl::Status nothing = Ask(By("")), wrong = Ask(By("stranger")), role = Ask(By("worker"));
  EXPECT_TRUE(absl::IsUnauthenticated(nothing)) << nothing;
  EXPECT_TRUE(absl::IsUnauthenticated(wrong)) << wrong;
  EXPECT_TRUE(absl::IsPermissionDenied(role)) << role;
  EXPECT_THAT(std::string(role.message()), HasSubstr("identity \"worker\" has the roles submit; "
                                                     "spexd.v1.Extraction/GetCapabilities takes read"));
  EXPECT_TRUE(absl::IsPermissionDenied(LoadPsf(By("viewer"), false).status()));
  EXPECT_TRUE(LoadPsf(By("worker"), false).ok());
  const nlohmann::json denied = AuditLine("LoadPsf", "denied");
  EXPECT_EQ(denied["identity"], "viewer");
  EXPECT_EQ(denied["via"], "token");
  EXPECT_EQ(HttpGet(Http(), "/livez").first, 200);
  EXPECT_THAT(HttpGet(Http(), "/metrics").second, HasSubstr("spexd_access_total{decision=\"denied\"} 2"));
}

TEST_F(AccessTest, ThePsfOfOneIsNotUnloadedOrPinnedByAnother) {
  KnowTokens({{"alice", "submit"}, {"bob", "submit"}, {"operator", "administer"}});
  StartWithTls({"--identities", folder_ / "identities"});
  const auto loaded = LoadPsf(By("alice"), false);
  ASSERT_TRUE(loaded.ok()) << loaded.status();
  EXPECT_EQ(loaded->owner(), "alice");
  EXPECT_TRUE(absl::IsPermissionDenied(LoadPsf(By("bob"), true).status()));
  const absl::Status unload = Unload(By("bob"), loaded->hash());
  EXPECT_TRUE(absl::IsPermissionDenied(unload)) << unload;
  EXPECT_THAT(std::string(unload.message()), HasSubstr("belongs to \"alice\""));
  EXPECT_EQ(AuditLine("UnloadPsf", "denied")["identity"], "bob");
  EXPECT_TRUE(LoadPsf(By("alice"), true)->pinned());
  EXPECT_TRUE(Unload(By("operator"), loaded->hash()).ok());
  EXPECT_TRUE(absl::IsNotFound(Unload(By("alice"), loaded->hash())));
}

TEST_F(AccessTest, ListingTheJobsOfAnotherIsDeniedAndNoted) {
  KnowTokens({{"alice", "submit,read"}, {"operator", "administer"}});
  Start({"--listen", "127.0.0.1:0", "--identities", folder_ / "identities", "--jobs-dir", folder_ / "jobs"});
  const auto jobs = v1::Jobs::NewStub(
      grpc::CreateChannel(ports_["grpc"].get<std::string>(), grpc::InsecureChannelCredentials()));
  const auto list = [&](const std::string& caller, const std::string& owner) {
    grpc::ClientContext context;
    context.AddMetadata("authorization", "Bearer " + caller + "-token");
    v1::ListJobsRequest request;
    request.set_owner(owner);
    v1::ListJobsResponse page;
    return jobs->ListJobs(&context, request, &page);
  };
  EXPECT_TRUE(list("alice", "").ok());
  EXPECT_TRUE(list("alice", "alice").ok());
  EXPECT_TRUE(list("operator", "bob").ok());
  const grpc::Status denied = list("alice", "bob");
  EXPECT_EQ(denied.error_code(), grpc::StatusCode::PERMISSION_DENIED);
  EXPECT_THAT(denied.error_message(), HasSubstr("only an administrator may list the jobs of \"bob\""));
  EXPECT_EQ(AuditLine("ListJobs", "denied")["identity"], "alice");
  EXPECT_THAT(HttpGet(Http(), "/metrics").second, HasSubstr("spexd_access_total{decision=\"denied\"} 1"));
}

TEST_F(AccessTest, TheAccumulatorsOfOneAreNotThereForAnother) {
  KnowTokens({{"alice", "submit,read"}, {"bob", "submit,read"}, {"operator", "administer"}});
  StartWithTls({"--identities", folder_ / "identities", "--jobs-dir", folder_ / "jobs"});
  const auto connect = [this](const std::string& name) { return *client::Connect(By(name)); };
  const auto alice = connect("alice"), bob = connect("bob"), administrator = connect("operator");
  const auto soon = client::Clock::now() + std::chrono::seconds(60);
  v1::CreateAccumulatorRequest create;
  create.set_name("night");
  create.set_kind(v1::ACCUMULATOR_KIND_PCA);
  ASSERT_TRUE(alice->CreateAccumulator(create, soon).ok());
  EXPECT_EQ(bob->ListAccumulators({}, soon)->accumulators_size(), 0);
  v1::ReadAccumulatorRequest read;
  v1::DropAccumulatorRequest drop;
  read.set_name("night");
  drop.set_name("night");
  for (const char* owner : {"", "alice"}) {
    read.set_owner(owner);
    drop.set_owner(owner);
    EXPECT_TRUE(absl::IsNotFound(bob->ReadAccumulator(read, soon).status())) << owner;
    EXPECT_TRUE(absl::IsNotFound(bob->DropAccumulator(drop, soon))) << owner;
  }
  EXPECT_TRUE(bob->CreateAccumulator(create, soon).ok()) << "names are an identity's own";
  EXPECT_EQ(administrator->ListAccumulators({}, soon)->accumulators_size(), 2);
  v1::ListAccumulatorsRequest of_alice;
  of_alice.set_owner("alice");
  EXPECT_TRUE(absl::IsPermissionDenied(bob->ListAccumulators(of_alice, soon).status()));
  EXPECT_EQ(administrator->ListAccumulators(of_alice, soon)->accumulators_size(), 1);
  EXPECT_TRUE(administrator->DropAccumulator(drop, soon).ok());
  EXPECT_TRUE(absl::IsNotFound(alice->DropAccumulator(drop, soon)));
}

TEST_F(AccessTest, SpexTakesItsCredentialsFromFlagsAndTheEnvironment) {
  KnowTokens({{"viewer", "read"}});
  StartWithTls({"--identities", folder_ / "identities"});
  const std::string address = ports_["grpc"].get<std::string>();
  const std::vector<std::string> variables = {"SPEXD_SERVER=" + address,
                                              "SPEXD_TLS_CA=" + certificates_.pem("authority"),
                                              "SPEXD_TOKEN_FILE=" + (folder_ / "viewer-token")};
  const RunResult environment = Spex({"status"}, {.environment = variables});
  EXPECT_EQ(environment.code, 0) << environment.output;
  WriteBytes(folder_ / "guess", "guess");
  const RunResult wrong = Spex({"status", "--token-file", folder_ / "guess"}, {.environment = variables});
  EXPECT_EQ(wrong.code, 2);
  EXPECT_THAT(wrong.output, HasSubstr("the token is not known to this server"));
  const RunResult job =
      Spex({"-i", folder_ / "psf.fits", "-p", folder_ / "psf.fits", "-o", folder_ / "out.fits"},
           {.environment = variables});
  EXPECT_EQ(job.code, 2);
  EXPECT_THAT(job.output, HasSubstr("identity \"viewer\" has the roles read"));
  const RunResult open = Spex({"status", "--server", "192.0.2.1:1", "--token-file", folder_ / "guess"});
  EXPECT_EQ(open.code, 2);
  EXPECT_THAT(open.output, HasSubstr("in plain text"));
  const RunResult none = Spex({"psf", "list", "--server", address, "--token-file", folder_ / "none"});
  EXPECT_THAT(none.output, HasSubstr("cannot be read"));
}

TEST_F(AccessTest, ClientCertificatesAreIdentities) {
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
  EXPECT_TRUE(absl::IsUnauthenticated(unknown)) << unknown;
  EXPECT_THAT(std::string(unknown.message()), HasSubstr("\"CN=unknown,O=Lab\" is not known"));
  for (const char* refused : {"expired", "impostor"}) {
    EXPECT_TRUE(absl::IsUnavailable(Ask(WithCertificate(refused)))) << refused;
  }
  EXPECT_TRUE(absl::IsUnavailable(Ask(By(""))));
  EXPECT_TRUE(spexd_->WaitForLine("\"grpc\""));  // why, in the log
  EXPECT_EQ(HttpGet(Http(), "/livez").first, 200);
}

TEST_F(AccessTest, PlainTextAndOldTlsAreRefused) {
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

TEST_F(AccessTest, NewConnectionsGetTheNewCertificateWhileAStreamRuns) {
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
  // The server looks once a second, and the channel tries again.
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

TEST_F(AccessTest, FilesThatAreNotGoodLeaveTheOldCertificateInForce) {
  certificates_.MakeAuthority("next authority");
  certificates_.Make("next", "next authority", "/CN=localhost");
  StartWithTls({"--tls-client-ca", certificates_.pem("authority")});
  certificates_.Make("worker", "authority", "/CN=worker");
  const std::string pem = certificates_.pem("server"), key = certificates_.key("server"),
                    authority = certificates_.pem("authority");
  const std::string good_pem = ReadBytes(pem), good_key = ReadBytes(key),
                    good_authority = ReadBytes(authority);
  const auto metric = [this] {
    return HttpGet(Http(), "/metrics").second;
  };
  // At once, so that the server never sees a half of it.
  const auto replace = [this](const std::string& file, const std::string& bytes) {
    WriteBytes(folder_ / "next.pem", bytes);
    std::filesystem::rename(folder_ / "next.pem", file);
  };
  WriteBytes(folder_ / "ca.pem", good_authority);  // for the clients, whatever the server's file becomes
  client::ServerAddress worker = WithCertificate("worker");
  worker.tls_ca = folder_ / "ca.pem";
  const std::string next_pem = ReadBytes(certificates_.pem("next"));
  const std::vector<std::pair<std::string, std::string>> bad = {
      {pem, ""},      {pem, "no certificate"}, {pem, good_pem.substr(0, good_pem.size() / 2)},
      {key, ""},      {key, "no key"},         {pem, next_pem},
      {authority, ""}};
  for (const auto& [file, bytes] : bad) {
    replace(file, bytes);
    std::string line;
    ASSERT_TRUE(spexd_->WaitForLine("\"certificates_refused\"", &line));
    EXPECT_THAT(line, HasSubstr(file == pem && bytes == next_pem ? key : file));
    EXPECT_TRUE(Ask(worker).ok()) << line << Ask(worker);
    EXPECT_THAT(metric(), HasSubstr("spexd_certificates_refused 1"));
    replace(file, file == pem ? good_pem : file == key ? good_key : good_authority);
    while (metric().find("spexd_certificates_refused 0") == std::string::npos) std::this_thread::yield();
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

TEST_F(AccessTest, SighupReadsTokensAndTheLogLevelAgain) {
  KnowTokens({{"old", "read"}, {"new", "read"}});
  KnowTokens({{"old", "read"}});
  WriteBytes(folder_ / "spexd.conf", absl::StrCat("identities = ", folder_ / "identities", "\n"));
  StartWithTls({"--config", folder_ / "spexd.conf"});
  EXPECT_TRUE(Ask(By("old")).ok());
  EXPECT_TRUE(absl::IsUnauthenticated(Ask(By("new"))));

  KnowTokens({{"new", "read"}});
  WriteBytes(folder_ / "spexd.conf", absl::StrCat("identities = ", folder_ / "identities",
                                                  "\nlog-level = error\nstall-seconds = 9\n"));
  spexd_->Signal(SIGHUP);
  std::string line;
  ASSERT_TRUE(spexd_->WaitForLine("\"reloaded\"", &line));
  EXPECT_THAT(line, HasSubstr("\"need_restart\":[\"--stall-seconds\"]"));
  EXPECT_TRUE(absl::IsUnauthenticated(Ask(By("old"))));
  EXPECT_TRUE(Ask(By("new")).ok());

  WriteBytes(folder_ / "spexd.conf", "stall-seconds = 0\n");
  spexd_->Signal(SIGHUP);
  ASSERT_TRUE(spexd_->WaitForLine("\"reload_failed\"", &line));
  EXPECT_THAT(line, HasSubstr(":1: stall-seconds is 0, must be 1 to 86400"));
  EXPECT_TRUE(Ask(By("new")).ok());
  spexd_->Signal(SIGTERM);
  EXPECT_EQ(spexd_->Wait(), 0);
}

TEST_F(AccessTest, UsersOfAUnixSocketAreIdentities) {
  const uint32_t own = geteuid();
  KnowTokens({{"viewer", "read"}}, absl::StrCat("me submit uid ", own, "\n"));
  Start({"--listen", absl::StrCat("unix:", folder_ / "socket"), "--identities", folder_ / "identities"});
  EXPECT_TRUE(LoadPsf(By(""), false).ok());
  EXPECT_EQ(AuditLine("LoadPsf", "allowed")["via"], "uid");
  EXPECT_TRUE(absl::IsPermissionDenied(Ask(By(""))));
  EXPECT_TRUE(Ask(By("viewer")).ok());  // a token goes before the user
  if (own != 0) GTEST_SKIP() << "only root can connect as another user";
  ASSERT_EQ(chmod(folder_.path().c_str(), 0755), 0);
  ASSERT_EQ(chmod((folder_ / "socket").c_str(), 0777), 0);
  // That user may not read these sources, of which the thread sanitizer would read a file.
  const std::string suppressions = folder_ / "tsan.supp";
  WriteBytes(suppressions, ReadBytes(std::string(SPEXD_SOURCE_DIR) + "/tests/support/tsan.supp"));
  const CommandResult other = RunCommand({"env", "TSAN_OPTIONS=suppressions=" + suppressions, "setpriv",
                                          "--reuid=65534", "--clear-groups", BinFolder() + "/spex", "status",
                                          "--server", "unix:" + (folder_ / "socket")});
  EXPECT_EQ(other.exit_code, 2);
  EXPECT_THAT(other.output, HasSubstr("user id 65534 is not known to this server"));
}

TEST_F(AccessTest, CheckConfigLooksAtTheFilesToo) {
  const auto check = [this](std::vector<std::string> flags) {
    flags.insert(flags.begin(), {BinFolder() + "/spexd", "--check-config"});
    return RunCommand(flags);
  };
  certificates_.Make("other", "authority", "/CN=other");
  const std::string pem = certificates_.pem("server"), key = certificates_.key("server");
  EXPECT_EQ(check({"--tls-certificate", pem, "--tls-private-key", key}).exit_code, 0);
  const CommandResult mismatch =
      check({"--tls-certificate", pem, "--tls-private-key", certificates_.key("other")});
  EXPECT_EQ(mismatch.exit_code, 2);
  EXPECT_THAT(mismatch.output, HasSubstr("--tls-private-key"));
  EXPECT_THAT(mismatch.output, HasSubstr("mismatch"));
  EXPECT_THAT(check({"--tls-certificate", folder_ / "none", "--tls-private-key", key}).output,
              HasSubstr("--tls-certificate"));
  WriteBytes(folder_ / "identities", "someone read password x\n");
  EXPECT_THAT(check({"--identities", folder_ / "identities"}).output,
              HasSubstr("identities:1: kind \"password\""));
}

}  // namespace
}  // namespace spexd::testing
