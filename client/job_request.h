// The request of a job to a server: its header and the bytes of its files.
#ifndef SPEXD_CLIENT_JOB_REQUEST_H_
#define SPEXD_CLIENT_JOB_REQUEST_H_

#include <cstdint>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "client/job.h"
#include "client/upload/input_file.h"
#include "core/base/status_macros.h"
#include "spexd/v1/extraction.pb.h"

namespace spexd::client {

// Returns the header of a job, with the sizes of the files that will be uploaded. InvalidArgument as in
// CheckJobOptions; errors as in InputFile::Open.
absl::StatusOr<v1::JobHeader> MakeJobHeader(const Job& job, bool upload);

// Sets a source to the file's absolute path, or to an upload. Errors as in InputFile::Open.
absl::Status SetSource(const std::string& path, bool upload, v1::InputSource* source);
// Does the same for a file that servers keep warm. `name`: a path, or kPsfHashPrefix and a hash.
absl::Status SetWarmSource(const std::string& name, bool upload, v1::InputSource* source);

// Sends a file's bytes as messages of type `Request`, which has a chunk and an end. `index`: the index of an
// input of which there may be several. Returns false if the call has ended (the stream says why). Errors are
// those of the file.
template <typename Request, typename Stream>
absl::StatusOr<bool> SendFile(const std::string& path, v1::Input input, Stream* stream, uint32_t index = 0) {
  SPEXD_ASSIGN_OR_RETURN(InputFile file, InputFile::Open(path));
  Request request;
  v1::InputChunk* const chunk = request.mutable_chunk();
  chunk->set_input(input);
  chunk->set_index(index);
  for (uint64_t offset = 0;; offset += chunk->payload().size()) {
    SPEXD_RETURN_IF_ERROR(file.Read(chunk->mutable_payload()));
    if (chunk->payload().empty()) break;
    chunk->set_offset(offset);
    if (!stream->Write(request)) return false;
  }
  request.mutable_end()->set_input(input);
  request.mutable_end()->set_index(index);
  request.mutable_end()->set_crc32c(file.crc32c());
  return stream->Write(request);
}

// Sends the files that `header` declares as uploads. Result and errors as in SendFile.
template <typename Request, typename Stream>
absl::StatusOr<bool> SendInputs(const Job& job, const v1::JobHeader& header, Stream* stream) {
  const struct {
    const v1::InputSource& source;
    const std::string& path;
    v1::Input input;
  } inputs[] = {{header.image(), job.image, v1::INPUT_IMAGE},
                {header.psf(), job.psf, v1::INPUT_PSF},
                {header.fibermap(), job.fibermap, v1::INPUT_FIBERMAP},
                {header.products().fiberflat(), job.products.fiberflat, v1::INPUT_FIBERFLAT},
                {header.products().templates(), job.products.templates, v1::INPUT_TEMPLATES},
                {header.trace_reference(), job.trace_reference, v1::INPUT_TRACE_REFERENCE}};
  for (const auto& input : inputs) {
    if (!input.source.has_upload()) continue;
    SPEXD_ASSIGN_OR_RETURN(const bool open, SendFile<Request>(input.path, input.input, stream));
    if (!open) return false;
  }
  return true;
}

}  // namespace spexd::client

#endif  // SPEXD_CLIENT_JOB_REQUEST_H_
