// spex doctor as a user runs it: on this machine, and with servers that can or cannot be used.
#include <arpa/inet.h>
#include <signal.h>
#include <sys/socket.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/base/build_version.h"
#include "grpcpp/grpcpp.h"
#include "spexd/v1/extraction.grpc.pb.h"
#include "tests/service/support/calls.h"
#include "tests/service/support/inputs.h"
#include "tests/service/support/secured_server.h"
#include "tests/support/build_paths.h"
#include "tests/support/loopback.h"
#include "tests/support/matchers.h"
#include "tests/support/process.h"

namespace spexd::testing {
namespace {

using nlohmann::json;

struct Diagnosis {
  int code = -1;
  json checks;

  // Returns the first check of that name, null if there is none.
  json Of(const std::string& name) const {
    for (const json& check : checks) {
      if (check.at("check") == name) return check;
    }
    return {};
  }
  std::string State(const std::string& name) const {
    const json check = Of(name);
    return check.is_null() ? "absent" : check.at("state").get<std::string>();
  }
  std::string Found(const std::string& name) const {
    const json check = Of(name);
    return check.is_null() ? "absent" : check.at("found").get<std::string>();
  }
  std::string Next(const std::string& name) const {
    const json check = Of(name);
    return check.is_null() ? "absent" : check.at("next").get<std::string>();
  }
};

Diagnosis Doctor(std::vector<std::string> arguments, const ProcessOptions& options = {}) {
  arguments.insert(arguments.begin(), {"doctor", "--json"});
  const RunResult run = Spex(arguments, options);
  json checks = json::parse(run.output, nullptr, /*allow_exceptions=*/false);
  EXPECT_TRUE(checks.is_array()) << run.output;
  return {run.code, std::move(checks)};
}

Diagnosis DoctorOf(const std::string& server, std::vector<std::string> more = {}) {
  more.insert(more.begin(), {"--server", server});
  return Doctor(more);
}

TEST(DoctorTest, TellsWhatThisMachineHas) {
  const Diagnosis machine = Doctor({});
  EXPECT_EQ(machine.code, 0);
  EXPECT_EQ(machine.Found("program"), "spex " + BuildVersion());
  EXPECT_THAT(machine.Found("processors"), ContainsRegex("^[0-9]+ of [0-9]+ usable"));
  EXPECT_THAT(machine.Found("memory"), ContainsRegex("a frame of 500 fibres x 2326 bins takes [0-9.]+ GiB"));
  EXPECT_EQ(machine.State("folder"), "ok") << machine.Found("folder");
  EXPECT_TRUE(machine.State("gpu") != "absent" || machine.State("driver") != "absent") << machine.checks;
  for (const json& check : machine.checks) EXPECT_EQ(check.at("server"), "");
}

TEST(DoctorTest, PrintsALineForEachCheck) {
  const RunResult run = Spex({"doctor"});
  EXPECT_EQ(run.code, 0);
  EXPECT_THAT(run.output, StartsWith("This machine\n  ok       program      spex "));
  const RunResult nobody = Spex({"doctor", "--server", "unix:/nowhere/spexd.sock"});
  EXPECT_THAT(nobody, ExitsWith(3, HasSubstr("Server unix:/nowhere/spexd.sock\n  error    port         "
                                             "/nowhere/spexd.sock: there is no such socket\n")));
  EXPECT_THAT(nobody.output, HasSubstr("-> check the address and its port"));
}

TEST(DoctorTest, TellsWhatIsMissingForPictures) {
  const TempFolder folder;
  WriteBytes(folder / "python", "#!/bin/sh\necho 'spex: plot needs the Python package matplotlib'\nexit 2\n");
  std::filesystem::permissions(folder / "python", std::filesystem::perms::owner_all);
  ProcessOptions options;
  options.environment = {"SPEXD_PYTHON=" + (folder / "python")};
  const Diagnosis machine = Doctor({}, options);
  EXPECT_EQ(machine.code, 0) << "spex extracts without pictures";
  EXPECT_EQ(machine.State("plot"), "warning");
  EXPECT_EQ(machine.Found("plot"), "plot needs the Python package matplotlib");
  options.environment = {"SPEXD_PYTHON=/nowhere/python"};
  EXPECT_THAT(Doctor({}, options).Found("plot"), HasSubstr("/nowhere/python was not found"));
}

TEST(DoctorTest, TellsWhichVariablesHaveAnEffect) {
  ProcessOptions options;
  options.environment = {"SPEXD_SERVER=unix:/nowhere/spexd.sock", "SPEXD_TOKEN_FIEL=/home/token"};
  const Diagnosis diagnosis = Doctor({}, options);
  EXPECT_EQ(diagnosis.code, 3) << "the variable names the server that is checked";
  EXPECT_EQ(diagnosis.State("port"), "error");
  EXPECT_THAT(diagnosis.checks.dump(), AllOf(HasSubstr("SPEXD_SERVER=unix:/nowhere/spexd.sock: the server"),
                                             HasSubstr("did you mean SPEXD_TOKEN_FILE?")));
  EXPECT_EQ(Doctor({"--server", ""}, options).code, 0) << "the flag checks this machine nevertheless";
}

TEST(DoctorTest, AsksOnlyServersForPaths) {
  EXPECT_THAT(Spex({"doctor", "--path", "image.fits"}), ExitsWith(2, HasSubstr("give --server, too")));
}

TEST(DoctorTest, TellsOfAServerThatIsWell) {
  const TestServer server({"--device", "cpu"});
  const Diagnosis diagnosis = DoctorOf(server.address());
  EXPECT_EQ(diagnosis.code, 0) << diagnosis.checks;
  for (const char* name : {"port", "caller", "health", "version", "engine cpu", "jobs", "roots", "clock"}) {
    EXPECT_EQ(diagnosis.State(name), "ok") << name;
  }
  EXPECT_EQ(diagnosis.Found("port"), server.address() + " takes connections");
  EXPECT_THAT(diagnosis.Found("roots"), HasSubstr("--upload"));
  EXPECT_EQ(diagnosis.State("tls"), "absent");
}

TEST(DoctorTest, ChecksEachServerOfAListAndTheNamesOfEach) {
  const TestServer server({"--device", "cpu"});
  const std::string port = server.address().substr(server.address().rfind(':'));
  const Diagnosis diagnosis =
      DoctorOf(absl::StrCat("localhost", port, ",no-such-host.invalid:50051,localhost,unix:/nowhere/s"));
  EXPECT_EQ(diagnosis.code, 3);
  std::vector<std::string> failed;
  for (const json& check : diagnosis.checks) {
    if (check.at("state") == "error")
      failed.push_back(
          absl::StrCat(check.at("server").get<std::string>(), " ", check.at("check").get<std::string>()));
  }
  EXPECT_THAT(failed,
              ElementsAre("no-such-host.invalid:50051 address", "localhost address", "unix:/nowhere/s port"));
  EXPECT_THAT(diagnosis.Found("address"), HasSubstr("127.0.0.1" + port));
  EXPECT_EQ(DoctorOf("localhost").code, 2);
  EXPECT_THAT(DoctorOf("localhost").Found("address"), HasSubstr("give host:port"));
}

TEST(DoctorTest, TellsThatNobodyListens) {
  // A port that is taken, but on which nobody listens.
  const FileDescriptor taken(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in place{};
  place.sin_family = AF_INET;
  place.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t bytes = sizeof(place);
  ASSERT_EQ(bind(taken.get(), reinterpret_cast<const sockaddr*>(&place), bytes), 0);
  ASSERT_EQ(getsockname(taken.get(), reinterpret_cast<sockaddr*>(&place), &bytes), 0);
  const std::string address = absl::StrCat("127.0.0.1:", ntohs(place.sin_port));
  const Diagnosis diagnosis = DoctorOf(address);
  EXPECT_EQ(diagnosis.code, 3);
  EXPECT_EQ(diagnosis.Found("port"), address + ": nobody listens there");
  EXPECT_THAT(diagnosis.Next("port"), HasSubstr("50051 by default"));
}

TEST(DoctorTest, TellsHowFarTheServersClockIsOff) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "a program with a sanitizer takes no preloaded library before it";
#endif
  const TempFolder folder;
  const int64_t ahead = int64_t{-90} * 1000000000;
  WriteBytes(folder / "clock", std::string(reinterpret_cast<const char*>(&ahead), sizeof(ahead)));
  ProcessOptions options;
  options.environment = {"LD_PRELOAD=" + BuildFolder() + "/tests/support/libspexd_set_clock.so",
                         "SPEXD_CLOCK_FILE=" + (folder / "clock")};
  const TestServer server({"--device", "cpu"}, options);
  const Diagnosis diagnosis = DoctorOf(server.address());
  EXPECT_EQ(diagnosis.code, 0) << "it can be used";
  EXPECT_EQ(diagnosis.State("clock"), "warning");
  EXPECT_THAT(diagnosis.Found("clock"), ContainsRegex("^(89|90)\\.[0-9] s behind this machine's$"));
}

class DoctorBesideServers : public SecuredServerTest {
 protected:
  // Diagnoses the server as a TLS caller with the token of that name ("": none).
  Diagnosis By(const std::string& token_of, std::vector<std::string> more = {}) {
    const client::ServerAddress server = SecuredServerTest::By(token_of);
    more.insert(more.begin(), {"--tls-ca", server.tls_ca});
    if (!server.token_file.empty()) more.insert(more.end(), {"--token-file", server.token_file});
    return DoctorOf(server.address, more);
  }
  std::string Address() const { return ports_["grpc"].get<std::string>(); }
  std::vector<std::string> WithCertificate(const std::string& name) const {
    return {"--tls-cert", certificates_.pem(name), "--tls-key", certificates_.key(name)};
  }
};

TEST_F(DoctorBesideServers, TellsWhoMayDoWhatByTls) {
  KnowTokens({{"worker", "submit"}, {"viewer", "read"}, {"pipeline", "submit,read"}, {"stranger", "read"}});
  KnowTokens({{"worker", "submit"}, {"viewer", "read"}, {"pipeline", "submit,read"}});
  StartWithTls({"--identities", folder_ / "identities"});
  const Diagnosis pipeline = By("pipeline");
  EXPECT_EQ(pipeline.code, 0) << pipeline.checks;
  EXPECT_EQ(pipeline.Found("tls"), "TLSv1.3");
  EXPECT_THAT(pipeline.Found("certificate"), HasSubstr("(localhost, 127.0.0.1)"));
  EXPECT_EQ(pipeline.Found("caller"), "accepted; may submit jobs and read the status");

  const Diagnosis viewer = By("viewer");
  EXPECT_EQ(viewer.code, 0);
  EXPECT_EQ(viewer.State("caller"), "warning");
  EXPECT_THAT(viewer.Found("caller"), HasSubstr("identity \"viewer\" has the roles read"));

  const Diagnosis worker = By("worker");
  EXPECT_EQ(worker.code, 0);
  EXPECT_THAT(worker.Found("caller"), HasSubstr("identity \"worker\" has the roles submit"));
  EXPECT_EQ(worker.Found("health"), "serving");
  EXPECT_EQ(worker.State("version"), "absent");

  for (const Diagnosis& unknown : {By("stranger"), By("")}) {
    EXPECT_EQ(unknown.code, 2);
    EXPECT_EQ(unknown.State("caller"), "error");
    EXPECT_THAT(unknown.Next("caller"), HasSubstr("--token-file"));
  }
}

TEST_F(DoctorBesideServers, TellsWhatIsWrongWithTheServersCertificate) {
  certificates_.MakeAuthority("other");
  StartWithTls();
  const Diagnosis untrusted = DoctorOf(Address(), {"--tls-ca", certificates_.pem("other")});
  EXPECT_EQ(untrusted.code, 2);
  EXPECT_THAT(untrusted.Found("tls"), HasSubstr("signed the server's certificate"));
  EXPECT_THAT(DoctorOf(Address(), {"--tls-ca", "/nowhere/ca.pem"}).Found("credentials"),
              HasSubstr("/nowhere/ca.pem"));

  certificates_.Make("expired", "authority", "/CN=localhost", -1);
  Start({"--listen", "127.0.0.1:0", "--tls-certificate", certificates_.pem("expired"), "--tls-private-key",
         certificates_.key("expired")});
  EXPECT_THAT(By("").Found("tls"), HasSubstr("the server's certificate expired on "));

  Start({"--listen", "127.0.0.2:0", "--tls-certificate", certificates_.pem("server"), "--tls-private-key",
         certificates_.key("server")});
  EXPECT_EQ(By("").Found("tls"),
            "the server's certificate is not for 127.0.0.2; its names are localhost, 127.0.0.1");
}

TEST_F(DoctorBesideServers, TellsThatOneSideUsesTlsAndTheOtherDoesNot) {
  StartWithTls();
  const Diagnosis plain = DoctorOf(Address());
  EXPECT_EQ(plain.code, 3);
  EXPECT_EQ(plain.Found("tls"), "the server uses TLS, and --tls-ca is not given");
  EXPECT_THAT(plain.Next("tls"), HasSubstr("SPEXD_TLS_CA"));

  Start({"--listen", "127.0.0.1:0"});
  const Diagnosis tls = By("");
  EXPECT_EQ(tls.code, 2) << tls.checks;
  EXPECT_EQ(tls.Found("tls"), "the server does not use TLS");
}

TEST_F(DoctorBesideServers, SendsNoTokenInPlainTextToAnotherMachine) {
  KnowTokens({{"worker", "submit"}});
  const Diagnosis diagnosis = DoctorOf("192.0.2.1:50051", {"--token-file", folder_ / "worker-token"});
  EXPECT_EQ(diagnosis.code, 2);
  EXPECT_THAT(diagnosis.Found("credentials"), HasSubstr("192.0.2.1:50051 in plain text"));
  EXPECT_EQ(diagnosis.State("port"), "absent");
}

TEST_F(DoctorBesideServers, TellsWhichClientCertificateIsMissingOrRefused) {
  certificates_.MakeAuthority("clients");
  certificates_.Make("worker", "clients", "/O=Lab/CN=worker");
  certificates_.Make("old", "clients", "/O=Lab/CN=worker", -1);
  certificates_.Make("stranger", "authority", "/O=Lab/CN=worker");
  StartWithTls({"--tls-client-ca", certificates_.pem("clients")});
  const Diagnosis worker = By("", WithCertificate("worker"));
  EXPECT_EQ(worker.code, 0) << worker.checks;
  EXPECT_EQ(worker.Found("tls"), "TLSv1.3, the server asked for a client certificate");

  EXPECT_EQ(By("").Found("tls"), "the server asks for a client certificate, and none is given");
  EXPECT_EQ(By("").code, 2);
  EXPECT_THAT(By("", WithCertificate("old")).Found("certificate"), HasSubstr("expired on "));
  EXPECT_THAT(By("", WithCertificate("stranger")).Found("tls"),
              HasSubstr("the server refuses the client's certificate"));
}

TEST_F(DoctorBesideServers, TellsWhichFilesTheServerCanOpen) {
  WritePreprocFile(folder_ / "preproc.fits");
  Start({"--listen", "127.0.0.1:0"});
  const TempFolder outside;
  WriteBytes(outside / "image.fits", "SIMPLE");
  const Diagnosis diagnosis =
      DoctorOf(Address(), {"--path", folder_ / "preproc.fits", "--path", folder_ / "psf.fits"});
  EXPECT_EQ(diagnosis.code, 0) << diagnosis.checks;
  EXPECT_EQ(diagnosis.Found("path"), (folder_ / "preproc.fits") + ": the server can open it");
  EXPECT_THAT(Spex({"status", "--server", Address()}).output, HasSubstr("PSFs   0 warm"))
      << "nothing is kept";

  const Diagnosis denied = DoctorOf(Address(), {"--path", outside / "image.fits"});
  EXPECT_EQ(denied.code, 2);
  EXPECT_THAT(denied.Found("path"), HasSubstr("lies outside the allowed roots"));
  EXPECT_THAT(DoctorOf(Address(), {"--path", folder_ / "absent.fits"}).Next("path"),
              HasSubstr("another file system"));
}

TEST_F(DoctorBesideServers, TellsThatAServerDrains) {
  Start({"--listen", "127.0.0.1:0"});
  const auto channel = grpc::CreateChannel(Address(), grpc::InsecureChannelCredentials());
  const auto extraction = v1::Extraction::NewStub(channel);
  grpc::ClientContext context;
  const auto stream = extraction->Extract(&context);
  SendHeader(stream.get(), RawHeader(folder_, 5));
  v1::ExtractEvent accepted;
  ASSERT_TRUE(stream->Read(&accepted));
  spexd_->Signal(SIGTERM);
  ASSERT_TRUE(spexd_->WaitForLine("\"draining\""));
  const Diagnosis diagnosis = DoctorOf(Address(), {"--path", folder_ / "psf.fits"});
  EXPECT_EQ(diagnosis.code, 3) << diagnosis.checks;
  EXPECT_THAT(diagnosis.Found("health"), HasSubstr("the server drains"));
  EXPECT_EQ(diagnosis.State("path"), "absent");
  context.TryCancel();
  stream->Finish();
}

// The server accepts connections and answers nothing.
TEST_F(DoctorBesideServers, DoesNotWaitForEverForAServerThatIsSilent) {
  std::string address;
  const FileDescriptor silent = ListenOnLoopback(&address);
  const Diagnosis plain = DoctorOf(address, {"--timeout", "0.3"});
  EXPECT_EQ(plain.code, 3);
  EXPECT_EQ(plain.State("answer"), "error") << plain.checks;
  const Diagnosis tls = DoctorOf(address, {"--timeout", "0.3", "--tls-ca", certificates_.pem("authority")});
  EXPECT_EQ(tls.code, 3);
  EXPECT_EQ(tls.Found("tls"), "the server does not answer the handshake in time");
}

}  // namespace
}  // namespace spexd::testing
