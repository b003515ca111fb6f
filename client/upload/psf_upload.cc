#include "client/upload/psf_upload.h"

#include "client/upload/input_file.h"
#include "core/base/digest/sha256.h"
#include "core/base/status_macros.h"

namespace spexd::client {

absl::StatusOr<v1::PsfInfo> LoadPsf(Connection* connection, const std::string& path,
                                    const LoadOptions& options, Connection::Deadline deadline) {
  v1::LoadPsfHeader header;
  header.set_pin(options.pin);
  header.set_kind(options.kind);
  if (!options.upload) {
    header.set_path(AbsolutePath(path));
    return connection->LoadPsf(header, {}, deadline);
  }
  // The file is read twice, because its hash is sent first.
  SPEXD_ASSIGN_OR_RETURN(InputFile hashed, InputFile::Open(path));
  Sha256 hash;
  for (std::string piece;;) {
    SPEXD_RETURN_IF_ERROR(hashed.Read(&piece));
    if (piece.empty()) break;
    hash.Update(piece);
  }
  header.mutable_upload()->set_name(path);
  header.mutable_upload()->set_bytes(static_cast<uint64_t>(hashed.bytes()));
  header.mutable_upload()->set_sha256(hash.Hex());
  SPEXD_ASSIGN_OR_RETURN(InputFile file, InputFile::Open(path));
  return connection->LoadPsf(
      header, [&file] { return file.Read(); }, deadline);
}

}  // namespace spexd::client
