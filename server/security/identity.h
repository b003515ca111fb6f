// Who calls, and what that lets them do. Pure: neither gRPC nor files.
#ifndef SPEXD_SERVER_SECURITY_IDENTITY_H_
#define SPEXD_SERVER_SECURITY_IDENTITY_H_

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace spexd {

// What an identity may do: submit jobs and load PSFs; read the server's state; administer, which includes
// both, and unload or pin the PSFs of others.
struct Roles {
  bool submit = false, read = false, administer = false;

  static Roles All() { return {true, true, true}; }
  // "submit,read"; "none" without any.
  std::string Text() const;
  friend bool operator==(const Roles&, const Roles&) = default;
};

// InvalidArgument names a role that there is not.
absl::StatusOr<Roles> ParseRoles(absl::string_view text);

struct Identity {
  std::string name;
  Roles roles;
  double weight = 1;  // of its share of the devices
};

// PermissionDenied unless `caller` has the role that the RPC takes ("spexd.v1.Extraction/Extract"). An RPC
// that has none assigned is denied to all.
absl::Status CheckMayCall(const Identity& caller, absl::string_view rpc);

// PermissionDenied unless the caller owns what is kept warm or is an administrator. `what`: the item, for
// messages. `owner` is "" if nobody does. `action`: "unload" or "pin".
absl::Status CheckMayManage(const Identity& caller, const std::string& owner, const std::string& what,
                            const char* action);

}  // namespace spexd

#endif  // SPEXD_SERVER_SECURITY_IDENTITY_H_
