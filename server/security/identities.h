// The identities that a server knows, and the credentials by which it recognises them.
//
// The file of --identities has a line for each credential of an identity:
//
//   NAME  ROLES        token        sha256:HEX         SHA-256 of a bearer token, in lower-case hexadecimal
//   NAME  ROLES        certificate  CN=worker,O=Lab    a client certificate's subject, by RFC 2253
//   NAME  ROLES        uid          1000               user id of a process on the Unix socket
//
// A line of one of these kinds sets one of the identity's Shares:
//
//   NAME  ROLES        weight       2.5                0.01 to 100; default 1
//   NAME  ROLES        queue-share  0.25               0.001 to 1; default 0.5
//   NAME  ROLES        disk-share   0.1                0.001 to 1; default 1
//
// ROLES are submit, read and administer, separated by commas. All lines of a name must have the same roles.
// Lines of the name * with the roles - replace the defaults of Shares. Empty lines and lines that begin with
// # are skipped.
#ifndef SPEXD_SERVER_SECURITY_IDENTITIES_H_
#define SPEXD_SERVER_SECURITY_IDENTITIES_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "server/security/identity.h"

namespace spexd {

// The credentials that a call shows.
struct Evidence {
  std::optional<std::string> token = {};                // sent with the call
  std::optional<std::string> certificate_subject = {};  // of the verified certificate of the connection
  std::optional<uint32_t> uid = {};                     // of the process at the other end of a Unix socket

  // Returns the credential that Identify uses, which is the first one that is set: "token", "certificate",
  // "uid", or "nothing".
  const char* Kind() const;
};

// The known identities. Immutable.
class Identities {
 public:
  // Returns the identities of an open server. A caller with a certificate or a user id is named after it and
  // may submit and read; `own_uid` and root may administer, too. Any other caller is "anonymous" and may
  // administer. Each may take all of the queue and the disk.
  static Identities Open(uint32_t own_uid);
  // Parses a file's text. `path`: its name in messages. InvalidArgument names the line.
  static absl::StatusOr<Identities> Parse(const std::string& path, const std::string& text);

  // Returns the caller's identity. The time of the comparison does not depend on how much of a token is
  // right. Unauthenticated: no credential was shown, or it is unknown.
  absl::StatusOr<Identity> Identify(const Evidence& evidence) const;

  // Returns the shares of a name; the defaults for an unknown one.
  Shares SharesOf(const std::string& name) const;

  bool open() const { return open_uid_.has_value(); }
  int size() const { return static_cast<int>(roles_.size()); }

 private:
  struct Token {
    std::string sha256, name;
  };
  absl::Status AddLine(const std::vector<std::string>& fields);
  absl::StatusOr<bool> AddProof(const std::string& name, const std::string& kind, const std::string& value);
  absl::StatusOr<Identity> Known(const std::string& name) const;
  absl::StatusOr<Identity> IdentifyOpen(const Evidence& evidence) const;

  std::optional<uint32_t> open_uid_;
  std::map<std::string, Roles> roles_;                            // by name
  std::map<std::pair<std::string, std::string>, double> shares_;  // set by lines; by name and kind
  std::vector<Token> tokens_;
  std::map<std::string, std::string> subjects_;  // names by subject
  std::map<uint32_t, std::string> uids_;         // names by user id
};

}  // namespace spexd

#endif  // SPEXD_SERVER_SECURITY_IDENTITIES_H_
