// Lists of the files that a server keeps warm: PSFs, fiberflats, templates and trace references.
#ifndef SPEXD_CLIENT_PSF_LIST_H_
#define SPEXD_CLIENT_PSF_LIST_H_

#include "client/connection/connection.h"

namespace spexd::client {

// Returns all warm PSFs (all pages), most recently used first. Errors are the server's.
absl::StatusOr<v1::ListPsfsResponse> ListAllPsfs(Connection* connection, Connection::Deadline deadline);

inline constexpr v1::WarmKind kWarmKinds[] = {v1::WARM_KIND_PSF, v1::WARM_KIND_FIBERFLAT,
                                              v1::WARM_KIND_TEMPLATES, v1::WARM_KIND_TRACE_REFERENCE};

// Return all warm files of one kind, and of all kinds, one after the other.
absl::StatusOr<v1::ListPsfsResponse> ListWarm(Connection* connection, v1::WarmKind kind,
                                              Connection::Deadline deadline);
absl::StatusOr<v1::ListPsfsResponse> ListAllWarm(Connection* connection, Connection::Deadline deadline);

}  // namespace spexd::client

#endif  // SPEXD_CLIENT_PSF_LIST_H_
