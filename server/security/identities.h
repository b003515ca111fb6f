// The identities that a server knows, and how each proves itself.
//
// The file has a line for each way that an identity proves itself:
//
//   NAME  ROLES        token        sha256:HEX         SHA-256 of a bearer token, in lower-case hexadecimal
//   NAME  ROLES        certificate  CN=worker,O=Lab    a client certificate's subject, by RFC 2253
//   NAME  ROLES        uid          1000               user id of a process on the Unix socket
//
// and, where a name may take more or less of what all share than others, a line for each of its Shares:
//
//   NAME  ROLES        weight       2.5                0.01 to 100; default 1
//   NAME  ROLES        queue-share  0.25               0.001 to 1; default 0.5
//   NAME  ROLES        disk-share   0.1                0.001 to 1; default 1
//
// ROLES are submit, read and administer, separated by commas. Lines of one name have the same roles. Lines of
// the name * with the roles - replace these defaults. Empty lines and lines that begin with # are skipped.
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

// What a call shows of its caller.
struct Evidence {
  std::optional<std::string> token = {};                // sent with the call
  std::optional<std::string> certificate_subject = {};  // of the connection, verified
  std::optional<uint32_t> uid = {};                     // of the process at the other end of a Unix socket

  // "token", "certificate", "uid" or "nothing": what Identify goes by, the first of them that is there.
  const char* Kind() const;
};

// Immutable.
class Identities {
 public:
  // Everyone is the administrator "anonymous", but for those who show a certificate or a user id: these have
  // its name, and submit and read. `own_uid` and root administer. Each may take all of queue and disk.
  static Identities Open(uint32_t own_uid);
  // InvalidArgument names the line. `path` is for messages.
  static absl::StatusOr<Identities> Parse(const std::string& path, const std::string& text);

  // Unauthenticated: nothing was shown, or what was is not known here. The time it takes does not depend on
  // how much of a token is right.
  absl::StatusOr<Identity> Identify(const Evidence& evidence) const;

  // Those of a name that is not known are the defaults.
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
  std::map<std::pair<std::string, std::string>, double> shares_;  // that lines set, by name and kind
  std::vector<Token> tokens_;
  std::map<std::string, std::string> subjects_;  // to name
  std::map<uint32_t, std::string> uids_;         // to name
};

}  // namespace spexd

#endif  // SPEXD_SERVER_SECURITY_IDENTITIES_H_
