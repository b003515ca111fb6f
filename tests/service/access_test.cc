// Who may do what, with the real program: tokens, roles, owners, users of a Unix socket, and reloading.
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_replace.h"
#include "grpcpp/generic/generic_stub.h"
#include "grpcpp/grpcpp.h"
#include "spexd/v1/extraction.grpc.pb.h"
#include "spexd/v1/jobs.grpc.pb.h"
#include "spexd/v1/analysis.pb.h"
#include "spexd/v1/registry.grpc.pb.h"
#include "tests/service/support/inputs.h"
#include "tests/service/support/scrape.h"
#include "tests/service/support/secured_server.h"
#include "tests/support/build_paths.h"
#include "tests/support/matchers.h"
#include "tests/support/run_command.h"

namespace spexd::testing {
namespace {

// Who may call what. UNAUTHENTICATED is "unknown", PERMISSION_DENIED "denied" and any other status "allowed".
constexpr char kWhoMayCall[] = R"(
                                     nobody   submit   read     administer
spexd.v1.Extraction/Extract          unknown  allowed  denied   allowed
spexd.v1.Extraction/GetCapabilities  unknown  denied   allowed  allowed
spexd.v1.PsfRegistry/LoadPsf         unknown  allowed  denied   allowed
spexd.v1.PsfRegistry/ListPsfs        unknown  denied   allowed  allowed
spexd.v1.PsfRegistry/UnloadPsf       unknown  allowed  denied   allowed
spexd.v1.Jobs/Submit                 unknown  allowed  denied   allowed
spexd.v1.Jobs/Watch                  unknown  denied   allowed  allowed
spexd.v1.Jobs/GetJob                 unknown  denied   allowed  allowed
spexd.v1.Jobs/ListJobs               unknown  denied   allowed  allowed
spexd.v1.Jobs/CancelJob              unknown  allowed  denied   allowed
spexd.v1.Jobs/Ack                    unknown  allowed  denied   allowed
spexd.v1.Analysis/Analyse            unknown  allowed  denied   allowed
)";

class AccessTest : public SecuredServerTest {
 protected:
  // Returns all RPCs of the contract's services, for tests that hold for each of them.
  static std::vector<const google::protobuf::MethodDescriptor*> AllRpcs() {
    std::vector<const google::protobuf::MethodDescriptor*> rpcs;
    for (const auto* file : {v1::Capabilities::descriptor()->file(), v1::PsfInfo::descriptor()->file(),
                             v1::JobRecord::descriptor()->file(),
                             v1::AnalysisHeader::descriptor()->file()}) {
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
  // Calls `rpc` with one empty message.
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
  static std::string Judged(const grpc::Status& status) {
    if (status.error_code() == grpc::StatusCode::UNAUTHENTICATED) return "unknown";
    return status.error_code() == grpc::StatusCode::PERMISSION_DENIED ? "denied" : "allowed";
  }
};

TEST_F(AccessTest, EveryRpcAdmitsTheRolesOfTheTableAndNobodyElse) {
  KnowTokens({{"submit", "submit"}, {"read", "read"}, {"administer", "administer"}});
  Start({"--listen", "127.0.0.1:0", "--identities", folder_ / "identities", "--jobs-dir", folder_ / "jobs"});
  const auto channel =
      grpc::CreateChannel(ports_["grpc"].get<std::string>(), grpc::InsecureChannelCredentials());
  std::string table = absl::StrFormat("\n%-37snobody   submit   read     administer\n", "");
  for (const auto* rpc : AllRpcs()) {
    const std::string path = PathOf(*rpc);
    const auto judged = [&](const char* token) { return Judged(Call(channel, path, token)); };
    EXPECT_EQ(judged("guess"), "unknown") << path;
    absl::StrAppendFormat(&table, "%-37s%-9s%-9s%-9s%s\n", path, judged(""), judged("submit-token"),
                          judged("read-token"), judged("administer-token"));
  }
  EXPECT_EQ(table, kWhoMayCall);
  grpc::ClientContext twice;
  for (int k = 0; k < 2; ++k) twice.AddMetadata("authorization", "Bearer read-token");
  v1::Capabilities status;
  EXPECT_THAT(v1::Extraction::NewStub(channel)->GetCapabilities(&twice, {}, &status).error_message(),
              HasSubstr("must be \"Bearer TOKEN\", once"));
}

TEST_F(AccessTest, TokensGiveRolesOverTls) {
  KnowTokens({{"viewer", "read"}, {"worker", "submit"}, {"stranger", "read"}});
  KnowTokens({{"viewer", "read"}, {"worker", "submit"}});  // removes the stranger, who keeps the token
  StartWithTls({"--identities", folder_ / "identities"});
  EXPECT_TRUE(Ask(By("viewer")).ok()) << Ask(By("viewer"));
  const absl::Status nothing = Ask(By("")), wrong = Ask(By("stranger")), role = Ask(By("worker"));
  EXPECT_TRUE(absl::IsUnauthenticated(nothing)) << nothing;
  EXPECT_TRUE(absl::IsUnauthenticated(wrong)) << wrong;
  EXPECT_THAT(role, StatusIs(absl::StatusCode::kPermissionDenied,
                             HasSubstr("identity \"worker\" has the roles submit; "
                                       "spexd.v1.Extraction/GetCapabilities takes read")));
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
  EXPECT_THAT(Unload(By("bob"), loaded->hash()),
              StatusIs(absl::StatusCode::kPermissionDenied, HasSubstr("belongs to \"alice\"")));
  EXPECT_EQ(AuditLine("UnloadPsf", "denied")["identity"], "bob");
  EXPECT_TRUE(LoadPsf(By("alice"), true)->pinned());
  const absl::Status pinned = LoadPsf(By("bob"), true).status();
  EXPECT_TRUE(absl::IsPermissionDenied(pinned)) << "it is pinned, but not for bob: " << pinned;
  EXPECT_EQ(AuditLine("LoadPsf", "denied")["identity"], "bob");
  EXPECT_TRUE(LoadPsf(By("bob"), false).ok());
  EXPECT_TRUE(LoadPsf(By("operator"), true).ok());
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
  EXPECT_THAT(denied, StatusIs(grpc::StatusCode::PERMISSION_DENIED,
                               HasSubstr("only an administrator may list the jobs of \"bob\"")));
  EXPECT_EQ(AuditLine("ListJobs", "denied")["identity"], "alice");
  EXPECT_THAT(HttpGet(Http(), "/metrics").second, HasSubstr("spexd_access_total{decision=\"denied\"} 1"));
}

TEST_F(AccessTest, TheDetachedJobOfOneIsNotThereForAnother) {
  KnowTokens({{"alice", "submit,read"}, {"bob", "submit,read"}});
  WritePreprocFile(folder_ / "preproc.fits");
  StartWithTls({"--identities", folder_ / "identities", "--jobs-dir", folder_ / "jobs"});
  const auto alice = *client::Connect(By("alice")), bob = *client::Connect(By("bob"));
  const auto soon = client::Clock::now() + std::chrono::seconds(60);
  v1::SubmitRequest submit;
  submit.mutable_header()->set_request_id("night 7");
  *submit.mutable_header()->mutable_job() = PathHeader(folder_, 5);
  v1::SubmitReply reply;
  const auto submission = alice->Submit(soon);
  ASSERT_TRUE(submission->Write(submit) && submission->WritesDone());
  ASSERT_TRUE(submission->Finish(&reply).status.ok());
  const std::string& job = reply.job_id();
  const auto watch = [&](client::Connection* caller) {
    v1::WatchRequest request;
    request.set_job_id(job);
    const auto events = caller->Watch(request, soon);
    v1::WatchEvent event;
    while (events->Read(&event)) continue;
    return events->Finish().status;
  };
  const auto expect_denied = [&](const absl::Status& answer, const std::string& rpc) {
    EXPECT_THAT(answer, StatusIs(absl::StatusCode::kNotFound, Not(HasSubstr("alice"))));
    const nlohmann::json line = AuditLine(rpc, "denied");
    EXPECT_EQ(line["identity"], "bob");
    EXPECT_EQ(line["message"],
              "job " + job + " belongs to \"alice\"; only its owner or an administrator may use it");
  };
  expect_denied(watch(bob.get()), "Watch");
  expect_denied(bob->GetJob(job, soon, {}).status(), "GetJob");
  expect_denied(bob->CancelJob(job, soon).status(), "CancelJob");
  EXPECT_TRUE(watch(alice.get()).ok()) << "it was not cancelled";
  expect_denied(bob->Ack(job, 1, soon, {}).status(), "Ack");
  EXPECT_EQ(alice->GetJob(job, soon, {})->acknowledged(), 0u);
  const absl::Status concealed = bob->GetJob(job, soon, {}).status(),
                     missing = bob->GetJob("nobody's", soon, {}).status();
  EXPECT_EQ(absl::StrReplaceAll(concealed.message(), {{job, "nobody's"}}), missing.message());
  EXPECT_EQ(ScrapedMetric(Http(), "spexd_access_total{decision=\"denied\"}"), 5);
}

TEST_F(AccessTest, JobsWithFilesOutsideTheRootsAreDeniedAndNoted) {
  KnowTokens({{"alice", "submit"}});
  StartWithTls({"--identities", folder_ / "identities", "--jobs-dir", folder_ / "jobs"});
  const auto alice = *client::Connect(By("alice"));
  const auto soon = client::Clock::now() + std::chrono::seconds(60);
  v1::JobHeader header = PathHeader(folder_, 5);
  header.mutable_image()->set_path("/proc/version");

  v1::ExtractRequest extract;
  *extract.mutable_header() = header;
  const auto extraction = alice->Extract(soon);
  extraction->Write(extract);
  v1::ExtractEvent event;
  EXPECT_FALSE(extraction->Read(&event));
  const absl::Status extracted = extraction->Finish().status;

  v1::SubmitRequest submit;
  submit.mutable_header()->set_request_id("night 7");
  *submit.mutable_header()->mutable_job() = header;
  const auto submission = alice->Submit(soon);
  submission->Write(submit);
  v1::SubmitReply reply;
  const absl::Status submitted = submission->Finish(&reply).status;

  const std::string outside = "path \"/proc/version\" lies outside the allowed roots";
  for (const auto& [rpc, status] : {std::pair("Extract", extracted), std::pair("Submit", submitted)}) {
    EXPECT_TRUE(absl::IsPermissionDenied(status)) << rpc << status;
    const nlohmann::json line = AuditLine(rpc, "denied");
    EXPECT_EQ(line["identity"], "alice");
    EXPECT_THAT(line["message"].get<std::string>(), AllOf(HasSubstr(outside), HasSubstr("spex --upload")));
  }
  EXPECT_EQ(ScrapedMetric(Http(), "spexd_access_total{decision=\"denied\"}"), 2);
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
  EXPECT_THAT(Spex({"status", "--token-file", folder_ / "guess"}, {.environment = variables}),
              ExitsWith(2, HasSubstr("the token is not known to this server")));
  EXPECT_THAT(Spex({"-i", folder_ / "psf.fits", "-p", folder_ / "psf.fits", "-o", folder_ / "out.fits"},
                   {.environment = variables}),
              ExitsWith(2, HasSubstr("identity \"viewer\" has the roles read")));
  EXPECT_THAT(Spex({"status", "--server", "192.0.2.1:1", "--token-file", folder_ / "guess"}),
              ExitsWith(2, HasSubstr("in plain text")));
  const RunResult none = Spex({"psf", "list", "--server", address, "--token-file", folder_ / "none"});
  EXPECT_THAT(none.output, HasSubstr("cannot be read"));
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
  EXPECT_TRUE(Ask(By("viewer")).ok());  // a token takes precedence over the user
  if (own != 0) GTEST_SKIP() << "only root can connect as another user";
  ASSERT_EQ(chmod(folder_.path().c_str(), 0755), 0);
  ASSERT_EQ(chmod((folder_ / "socket").c_str(), 0777), 0);
  // That user may not read these sources, which contain a file that the thread sanitizer would read.
  const std::string suppressions = folder_ / "tsan.supp";
  WriteBytes(suppressions, ReadBytes(SourceFolder() + "/tests/support/tsan.supp"));
  const CommandResult other = RunCommand({"env", "TSAN_OPTIONS=suppressions=" + suppressions, "setpriv",
                                          "--reuid=65534", "--clear-groups", BinFolder() + "/spex", "status",
                                          "--server", "unix:" + (folder_ / "socket")});
  EXPECT_THAT(other, ExitsWith(2, HasSubstr("user id 65534 is not known to this server")));
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
  EXPECT_THAT(mismatch, ExitsWith(2, AllOf(HasSubstr("--tls-private-key"), HasSubstr("mismatch"))));
  EXPECT_THAT(check({"--tls-certificate", folder_ / "none", "--tls-private-key", key}).output,
              HasSubstr("--tls-certificate"));
  WriteBytes(folder_ / "identities", "someone read password x\n");
  EXPECT_THAT(check({"--identities", folder_ / "identities"}).output,
              HasSubstr("identities:1: kind \"password\""));
}

}  // namespace
}  // namespace spexd::testing
