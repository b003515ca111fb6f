// Certificates for one test, made by openssl.
#ifndef SPEXD_TESTS_SERVICE_SUPPORT_CERTIFICATES_H_
#define SPEXD_TESTS_SERVICE_SUPPORT_CERTIFICATES_H_

#include <string>

#include "tests/support/temp_folder.h"

namespace spexd::testing {

// Files lie in a folder of its own: NAME.pem and NAME.key.
class Certificates {
 public:
  // An authority that signs itself.
  void MakeAuthority(const std::string& name);
  // A certificate for localhost and 127.0.0.1, and for the subject ("/O=Lab/CN=worker"). Days below 0: it has
  // expired.
  void Make(const std::string& name, const std::string& authority, const std::string& subject, int days = 2);
  // Puts the certificate and key of one name in the place of another's, each at once.
  void Replace(const std::string& name, const std::string& by);

  std::string pem(const std::string& name) const { return folder_ / (name + ".pem"); }
  std::string key(const std::string& name) const { return folder_ / (name + ".key"); }

 private:
  TempFolder folder_;
};

}  // namespace spexd::testing

#endif  // SPEXD_TESTS_SERVICE_SUPPORT_CERTIFICATES_H_
