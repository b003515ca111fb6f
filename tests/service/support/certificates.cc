#include "tests/service/support/certificates.h"

#include <filesystem>
#include <stdexcept>
#include <vector>

#include "tests/support/run_command.h"

namespace spexd::testing {
namespace {

void OpenSsl(std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), "openssl");
  const CommandResult result = RunCommand(arguments);
  if (result.exit_code != 0) throw std::runtime_error(arguments[1] + ": " + result.output);
}

const std::vector<std::string> kNewKey = {"-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes"};

void MakeWithNewKey(std::vector<std::string> arguments) {
  arguments.insert(arguments.begin() + 1, kNewKey.begin(), kNewKey.end());
  OpenSsl(arguments);
}

}  // namespace

void Certificates::MakeAuthority(const std::string& name) {
  MakeWithNewKey(
      {"req", "-x509", "-keyout", key(name), "-out", pem(name), "-days", "2", "-subj", "/CN=" + name});
}

void Certificates::Make(const std::string& name, const std::string& authority, const std::string& subject,
                        int days) {
  const std::string request = folder_ / "request", extension = folder_ / "extension";
  WriteBytes(extension, "subjectAltName=DNS:localhost,IP:127.0.0.1\n");
  MakeWithNewKey({"req", "-keyout", key(name), "-out", request, "-subj", subject});
  OpenSsl({"x509", "-req", "-in", request, "-CA", pem(authority), "-CAkey", key(authority), "-CAcreateserial",
           "-days", std::to_string(days), "-extfile", extension, "-out", pem(name)});
}

void Certificates::Replace(const std::string& name, const std::string& by) {
  std::filesystem::rename(key(by), key(name));
  std::filesystem::rename(pem(by), pem(name));
}

}  // namespace spexd::testing
