#include "server/security/identity.h"

#include <array>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "core/base/text.h"

namespace spexd {
namespace {

struct RoleName {
  const char* name;
  bool Roles::*role;
};
constexpr std::array<RoleName, 3> kRoles = {
    {{"submit", &Roles::submit}, {"read", &Roles::read}, {"administer", &Roles::administer}}};

struct RpcRole {
  const char* rpc;
  RoleName role;
};
constexpr RpcRole kRpcs[] = {
    {"spexd.v1.Extraction/Extract", kRoles[0]},   {"spexd.v1.Extraction/GetCapabilities", kRoles[1]},
    {"spexd.v1.Analysis/Analyse", kRoles[0]},     {"spexd.v1.PsfRegistry/LoadPsf", kRoles[0]},
    {"spexd.v1.PsfRegistry/ListPsfs", kRoles[1]}, {"spexd.v1.PsfRegistry/UnloadPsf", kRoles[0]},
    {"spexd.v1.Jobs/Submit", kRoles[0]},          {"spexd.v1.Jobs/Watch", kRoles[1]},
    {"spexd.v1.Jobs/GetJob", kRoles[1]},          {"spexd.v1.Jobs/ListJobs", kRoles[1]},
    {"spexd.v1.Jobs/CancelJob", kRoles[0]},       {"spexd.v1.Jobs/Ack", kRoles[0]}};

}  // namespace

std::string Roles::Text() const {
  std::string text;
  for (const RoleName& role : kRoles) {
    if (this->*role.role) absl::StrAppend(&text, text.empty() ? "" : ",", role.name);
  }
  return text.empty() ? "none" : text;
}

absl::StatusOr<Roles> ParseRoles(absl::string_view text) {
  Roles roles;
  for (absl::string_view name : absl::StrSplit(text, ',')) {
    bool known = false;
    for (const RoleName& role : kRoles) {
      if (name != role.name) continue;
      roles.*role.role = known = true;
    }
    if (!known) {
      return absl::InvalidArgumentError(
          absl::StrFormat("role \"%s\", must be submit, read or administer", ForMessage(name)));
    }
  }
  return roles;
}

absl::Status CheckMayCall(const Identity& caller, absl::string_view rpc) {
  for (const RpcRole& needed : kRpcs) {
    if (rpc != needed.rpc) continue;
    if (caller.roles.administer || caller.roles.*needed.role.role) return absl::OkStatus();
    return absl::PermissionDeniedError(absl::StrFormat("identity \"%s\" has the roles %s; %s takes %s",
                                                       caller.name, caller.roles.Text(), rpc,
                                                       needed.role.name));
  }
  return absl::PermissionDeniedError(absl::StrFormat("%s has no role assigned", rpc));
}

absl::Status CheckMayManage(const Identity& caller, const std::string& owner, const std::string& what,
                            const char* action) {
  if (caller.roles.administer || (!owner.empty() && caller.name == owner)) return absl::OkStatus();
  return absl::PermissionDeniedError(absl::StrFormat(
      "%s belongs to %s; only its owner or an administrator may %s it, identity \"%s\" is neither", what,
      owner.empty() ? "nobody" : absl::StrCat("\"", owner, "\""), action, caller.name));
}

}  // namespace spexd
