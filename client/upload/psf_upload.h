// Loading of files that servers keep warm, ahead of the jobs that use them.
#ifndef SPEXD_CLIENT_UPLOAD_PSF_UPLOAD_H_
#define SPEXD_CLIENT_UPLOAD_PSF_UPLOAD_H_

#include <string>

#include "client/connection/connection.h"

namespace spexd::client {

struct LoadOptions {
  bool upload = false;  // send the file's bytes; false: its absolute path
  bool pin = false;     // the server keeps the file until it is unloaded
  v1::WarmKind kind = v1::WARM_KIND_PSF;
};

// Loads a file. Errors as in InputFile::Open, and the server's.
absl::StatusOr<v1::PsfInfo> LoadPsf(Connection* connection, const std::string& path,
                                    const LoadOptions& options, Connection::Deadline deadline);

}  // namespace spexd::client

#endif  // SPEXD_CLIENT_UPLOAD_PSF_UPLOAD_H_
