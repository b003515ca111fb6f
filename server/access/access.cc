#include "server/access/access.h"

#include <unistd.h>

#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "core/base/status_macros.h"
#include "grpc/grpc_security_constants.h"
#include "server/access/peer_users.h"
#include "server/base/retry.h"
#include "server/config/small_file.h"

namespace spexd {
namespace {

constexpr char kBearer[] = "Bearer ";

absl::string_view View(grpc::string_ref text) { return {text.data(), text.size()}; }

std::optional<std::string> Property(const grpc::AuthContext& context, const char* name) {
  const std::vector<grpc::string_ref> values = context.FindPropertyValues(name);
  if (values.empty()) return std::nullopt;
  return std::string(View(values[0]));
}

// Returns the caller's certificate, token and user. Unauthenticated: the credentials cannot be read.
absl::StatusOr<Evidence> EvidenceOf(const grpc::ServerContextBase& context) {
  Evidence evidence;
  const auto [first, last] = context.client_metadata().equal_range("authorization");
  if (first != last) {
    const absl::string_view value = View(first->second);
    if (std::next(first) != last || !absl::StartsWithIgnoreCase(value, kBearer)) {
      return absl::UnauthenticatedError("metadata \"authorization\" must be \"Bearer TOKEN\", once");
    }
    evidence.token = std::string(value.substr(sizeof(kBearer) - 1));
  }
  const std::shared_ptr<const grpc::AuthContext> peer = context.auth_context();
  if (peer == nullptr) return evidence;
  evidence.certificate_subject = Property(*peer, GRPC_X509_SUBJECT_PROPERTY_NAME);
  uint32_t uid = 0;
  if (const auto text = Property(*peer, kPeerUidProperty); text.has_value() && absl::SimpleAtoi(*text, &uid))
    evidence.uid = uid;
  return evidence;
}

}  // namespace

absl::StatusOr<Identities> LoadIdentities(const ServerOptions& options) {
  if (options.identities.empty()) return Identities::Open(geteuid());
  SPEXD_ASSIGN_OR_RETURN(const std::string text, ReadSmallFile("--identities", options.identities));
  return Identities::Parse(options.identities, text);
}

Access::Access(Identities identities, Logger* log, Metrics* metrics)
    : identities_(std::make_shared<const Identities>(std::move(identities))), log_(log), metrics_(metrics) {}

absl::StatusOr<Identity> Access::Admit(const grpc::ServerContextBase& context, absl::string_view rpc) {
  Decision decision{rpc, "nothing", "", absl::OkStatus()};
  const absl::StatusOr<Identity> caller = Judge(context, &decision);
  decision.status = caller.status();
  Note(context, decision);
  return caller;
}

absl::StatusOr<Identity> Access::Judge(const grpc::ServerContextBase& context, Decision* decision) const {
  SPEXD_ASSIGN_OR_RETURN(const Evidence evidence, EvidenceOf(context));
  decision->via = evidence.Kind();
  std::shared_ptr<const Identities> identities;
  {
    MutexLock lock(&mutex_);
    identities = identities_;
  }
  SPEXD_ASSIGN_OR_RETURN(Identity caller, identities->Identify(evidence));
  decision->identity = caller.name;
  SPEXD_RETURN_IF_ERROR(CheckMayCall(caller, decision->rpc));
  return caller;
}

void Access::NoteIfDenied(const grpc::ServerContextBase& context, absl::string_view rpc,
                          const Identity& caller, const absl::Status& status) {
  if (status.ok()) return;
  const absl::Status why = Revealed(status);
  if (absl::IsPermissionDenied(why)) Note(context, {rpc, "", caller.name, why});
}

void Access::Note(const grpc::ServerContextBase& context, const Decision& decision) {
  const char* result = decision.status.ok()                       ? "allowed"
                       : absl::IsUnauthenticated(decision.status) ? "unauthenticated"
                                                                  : "denied";
  metrics_->CountAccess(result);
  JsonFields fields = {{"decision", result}, {"rpc", std::string(decision.rpc)}};
  if (!decision.identity.empty()) fields["identity"] = decision.identity;
  if (!decision.via.empty()) fields["via"] = decision.via;
  fields["peer"] = context.peer();
  if (!decision.status.ok()) fields["message"] = std::string(decision.status.message());
  log_->Write(decision.status.ok() ? LogLevel::kInfo : LogLevel::kWarning, "audit", fields);
}

Shares Access::SharesOf(const std::string& identity) const {
  MutexLock lock(&mutex_);
  return identities_->SharesOf(identity);
}

void Access::Replace(Identities identities) {
  auto fresh = std::make_shared<const Identities>(std::move(identities));
  MutexLock lock(&mutex_);
  identities_ = std::move(fresh);
}

}  // namespace spexd
