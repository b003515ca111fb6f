// Who calls an RPC, and whether they may: asked at the head of each, before anything is read.
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

// The identities of the file that the options name; without one, those of an open server. InvalidArgument
// names the file and the line.
absl::StatusOr<Identities> LoadIdentities(const ServerOptions& options);

// Safe to use from many threads. Each decision is a line "audit" of the log and counts in spexd_access_total.
class Access {
 public:
  // `log` and `metrics` are not owned.
  Access(Identities identities, Logger* log, Metrics* metrics);

  // The caller, if it may call `rpc` ("spexd.v1.Extraction/Extract"). Unauthenticated or PermissionDenied
  // otherwise.
  absl::StatusOr<Identity> Admit(const grpc::ServerContextBase& context, absl::string_view rpc)
      ABSL_LOCKS_EXCLUDED(mutex_);
  // The shares of an identity that may have no call open.
  Shares SharesOf(const std::string& identity) const ABSL_LOCKS_EXCLUDED(mutex_);
  // Notes that an admitted caller was denied what it asked for, if `status`, which ends its call, is
  // PermissionDenied or conceals that (see Conceal).
  void NoteIfDenied(const grpc::ServerContextBase& context, absl::string_view rpc, const Identity& caller,
                    const absl::Status& status);

  // Calls that begin from now on are judged by these.
  void Replace(Identities identities) ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  struct Decision {
    absl::string_view rpc;
    std::string via, identity;
    absl::Status status;
  };
  // Fills in the decision's `via` and `identity`, as far as it gets.
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
