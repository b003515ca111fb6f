// Authentication and authorisation of callers. Every RPC asks for them before it reads anything.
#ifndef SPEXD_SERVER_ACCESS_ACCESS_H_
#define SPEXD_SERVER_ACCESS_ACCESS_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "core/base/threads/mutex.h"
#include "grpcpp/server_context.h"
#include "server/base/log.h"
#include "server/config/options.h"
#include "server/operation/metrics.h"
#include "server/security/identities.h"

namespace spexd {

// Reads the identities from the options' file; without a file, returns those of an open server.
// InvalidArgument names the file and the line.
absl::StatusOr<Identities> LoadIdentities(const ServerOptions& options);

// Decides who may call what. Each decision is logged as "audit" and counted in spexd_access_total. Safe to
// use from many threads.
class Access {
 public:
  // `log` and `metrics` are not owned.
  Access(Identities identities, Logger* log, Metrics* metrics);

  // Returns the caller if it may call `rpc` ("spexd.v1.Extraction/Extract"). Unauthenticated: it is unknown.
  // PermissionDenied: it lacks the role.
  absl::StatusOr<Identity> Admit(const grpc::ServerContextBase& context, absl::string_view rpc)
      ABSL_LOCKS_EXCLUDED(mutex_);
  // Returns the shares of an identity, whether or not it has a call open.
  Shares SharesOf(const std::string& identity) const ABSL_LOCKS_EXCLUDED(mutex_);
  // Logs and counts a denial if `status`, which ends the call of an admitted caller, is PermissionDenied or
  // conceals it (see Conceal).
  void NoteIfDenied(const grpc::ServerContextBase& context, absl::string_view rpc, const Identity& caller,
                    const absl::Status& status);

  // Replaces the identities. Calls that have begun are not affected.
  void Replace(Identities identities) ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  struct Decision {
    absl::string_view rpc;
    std::string via, identity;
    absl::Status status;
  };
  // Decides on a call. Sets the decision's `via` and `identity` as far as they are known, also on errors.
  absl::StatusOr<Identity> Judge(const grpc::ServerContextBase& context, Decision* decision) const
      ABSL_LOCKS_EXCLUDED(mutex_);
  void Note(const grpc::ServerContextBase& context, const Decision& decision);

  mutable Mutex mutex_;
  std::shared_ptr<const Identities> identities_ ABSL_GUARDED_BY(mutex_);
  Logger* const log_;
  Metrics* const metrics_;
};

}  // namespace spexd

#endif  // SPEXD_SERVER_ACCESS_ACCESS_H_
