// Bringing a PSF to a server ahead of the jobs that use it.
#ifndef SPEXD_CLIENT_PSF_UPLOAD_H_
#define SPEXD_CLIENT_PSF_UPLOAD_H_

#include <string>

#include "client/connection.h"

namespace spexd::client {

// Loads a PSF by reference (its absolute path) or by upload. InvalidArgument, NotFound, PermissionDenied, and
// the server's errors.
absl::StatusOr<v1::PsfInfo> LoadPsf(Connection* connection, const std::string& path, bool upload, bool pin,
                                    Connection::Deadline deadline);

}  // namespace spexd::client

#endif  // SPEXD_CLIENT_PSF_UPLOAD_H_
