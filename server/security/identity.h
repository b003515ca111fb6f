// Who calls, and what that lets them do. Pure: neither gRPC nor files.
#ifndef SPEXD_SERVER_SECURITY_IDENTITY_H_
#define SPEXD_SERVER_SECURITY_IDENTITY_H_

#include <cmath>
#include <cstdint>
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

// How much an identity may take of what all share.
struct Shares {
  double weight = 1;  // of the devices' time, relative to the weights of others
  double queue = 1;   // of each limit of jobs that wait: their number, bytes and estimated seconds
  double disk = 1;    // of both limits of detached jobs: their bytes on disk and their number
};

// The share of `limit`, rounded up: at least 1 if the limit is. REQUIRES: 0 < share <= 1.
inline int64_t ShareOf(int64_t limit, double share) {
  constexpr double kRounding = 1e-9;  // 0.07 of 100 is 7, although rounding makes the product larger
  return share >= 1 ? limit : static_cast<int64_t>(std::ceil(share * static_cast<double>(limit) - kRounding));
}

struct Identity {
  std::string name;
  Roles roles;
  Shares shares = {};
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
