// Bringing a PSF, a fiberflat, templates or a trace reference to a server ahead of the jobs that use them.
#ifndef SPEXD_CLIENT_UPLOAD_PSF_UPLOAD_H_
#define SPEXD_CLIENT_UPLOAD_PSF_UPLOAD_H_

#include <string>

#include "client/connection/connection.h"

namespace spexd::client {

struct LoadOptions {
  bool upload = false;  // the file's bytes; else its absolute path
  bool pin = false;     // until it is unloaded
  v1::WarmKind kind = v1::WARM_KIND_PSF;
};

// InvalidArgument, NotFound, PermissionDenied, and the server's errors.
absl::StatusOr<v1::PsfInfo> LoadPsf(Connection* connection, const std::string& path,
                                    const LoadOptions& options, Connection::Deadline deadline);

}  // namespace spexd::client

#endif  // SPEXD_CLIENT_UPLOAD_PSF_UPLOAD_H_
