// Certificates for a test, made by openssl.
#ifndef SPEXD_TESTS_SERVICE_SUPPORT_CERTIFICATES_H_
#define SPEXD_TESTS_SERVICE_SUPPORT_CERTIFICATES_H_

#include <string>

#include "tests/support/temp_folder.h"

namespace spexd::testing {

// Makes certificates in its own folder: NAME.pem and NAME.key.
class Certificates {
 public:
  // Makes a self-signed authority.
  void MakeAuthority(const std::string& name);
  // Makes a certificate for localhost and 127.0.0.1 with the subject ("/O=Lab/CN=worker"). Negative `days`:
  // it has expired.
  void Make(const std::string& name, const std::string& authority, const std::string& subject, int days = 2);
  // Replaces the certificate and key of `name` by those of `by`, each file atomically.
  void Replace(const std::string& name, const std::string& by);

  std::string pem(const std::string& name) const { return folder_ / (name + ".pem"); }
  std::string key(const std::string& name) const { return folder_ / (name + ".key"); }

 private:
  TempFolder folder_;
};

}  // namespace spexd::testing

#endif  // SPEXD_TESTS_SERVICE_SUPPORT_CERTIFICATES_H_
