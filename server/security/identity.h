// Identities, roles and shares, and the decisions that follow from them. Pure functions, without gRPC and
// files.
#ifndef SPEXD_SERVER_SECURITY_IDENTITY_H_
#define SPEXD_SERVER_SECURITY_IDENTITY_H_

#include <cmath>
#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace spexd {

// The roles of an identity: submit jobs and load files; read the server's state; administer, which includes
// both and the PSFs and detached jobs of others.
struct Roles {
  bool submit = false, read = false, administer = false;

  static Roles All() { return {true, true, true}; }
  // Returns "submit,read" and so on; "none" without roles.
  std::string Text() const;
  friend bool operator==(const Roles&, const Roles&) = default;
};

// Parses roles that are separated by commas. InvalidArgument names an unknown role.
absl::StatusOr<Roles> ParseRoles(absl::string_view text);

// How much an identity may take of shared resources.
struct Shares {
  double weight = 1;  // the devices' time, relative to the weights of others
  double queue = 1;   // fraction of each limit of waiting jobs: number, bytes and estimated seconds
  double disk = 1;    // fraction of both limits of detached jobs: bytes on disk and number
};

// Returns the share of `limit`, rounded up, so that it is at least 1 if the limit is. REQUIRES: 0 < share <=
// 1.
inline int64_t ShareOf(int64_t limit, double share) {
  constexpr double kRounding = 1e-9;  // 0.07 of 100 is 7, although rounding makes the product larger
  return share >= 1 ? limit : static_cast<int64_t>(std::ceil(share * static_cast<double>(limit) - kRounding));
}

struct Identity {
  std::string name;
  Roles roles;
  Shares shares = {};
};

// Checks whether `caller` may call `rpc` ("spexd.v1.Extraction/Extract"). PermissionDenied: it lacks the
// role, or no role is assigned to the RPC.
absl::Status CheckMayCall(const Identity& caller, absl::string_view rpc);

// Checks whether `caller` may manage a warm item. PermissionDenied: it is neither the owner nor an
// administrator. `owner`: "" if the item has none. `what`: the item in messages. `action`: "unload" or "pin".
absl::Status CheckMayManage(const Identity& caller, const std::string& owner, const std::string& what,
                            const char* action);

}  // namespace spexd

#endif  // SPEXD_SERVER_SECURITY_IDENTITY_H_
