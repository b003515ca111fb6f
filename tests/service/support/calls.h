// Complete calls of the contract, each on a stub of the caller.
#ifndef SPEXD_TESTS_SERVICE_SUPPORT_CALLS_H_
#define SPEXD_TESTS_SERVICE_SUPPORT_CALLS_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "grpcpp/grpcpp.h"
#include "spexd/v1/extraction.grpc.pb.h"
#include "spexd/v1/jobs.grpc.pb.h"
#include "spexd/v1/registry.grpc.pb.h"

namespace spexd::testing {

using ExtractStream = grpc::ClientReaderWriter<v1::ExtractRequest, v1::ExtractEvent>;

struct UploadData {
  v1::Input input = v1::INPUT_IMAGE;
  std::string bytes;
  std::string end_sha256;
  size_t chunk = 10000;
};

// ---- Streams of Extract and Submit.

inline void SendHeader(ExtractStream* stream, const v1::JobHeader& header) {
  v1::ExtractRequest request;
  *request.mutable_header() = header;
  stream->Write(request);
}
// Sends the input in chunks and its end; stops early if the call ends.
template <typename Request>
void SendUpload(grpc::internal::WriterInterface<Request>* stream, const UploadData& upload) {
  Request request;
  for (size_t sent = 0; sent < upload.bytes.size(); sent += upload.chunk) {
    request.mutable_chunk()->set_input(upload.input);
    request.mutable_chunk()->set_offset(sent);
    request.mutable_chunk()->set_payload(upload.bytes.substr(sent, upload.chunk));
    if (!stream->Write(request)) return;
  }
  request.mutable_end()->set_input(upload.input);
  request.mutable_end()->set_sha256(upload.end_sha256);
  stream->Write(request);
}
// Reads all events of a job, and returns the call's status.
inline grpc::Status ReadToTheEnd(ExtractStream* stream) {
  v1::ExtractEvent event;
  while (stream->Read(&event)) continue;
  return stream->Finish();
}

// ---- Detached jobs.

inline v1::SubmitHeader Submission(const std::string& request_id, const v1::JobHeader& job) {
  v1::SubmitHeader header;
  header.set_request_id(request_id);
  *header.mutable_job() = job;
  return header;
}
inline grpc::Status SubmitJob(v1::Jobs::Stub* jobs, grpc::ClientContext* context,
                              const v1::SubmitHeader& header, v1::SubmitReply* reply,
                              const std::vector<UploadData>& uploads = {}) {
  const auto stream = jobs->Submit(context, reply);
  v1::SubmitRequest request;
  *request.mutable_header() = header;
  stream->Write(request);
  for (const UploadData& upload : uploads) SendUpload(stream.get(), upload);
  stream->WritesDone();
  return stream->Finish();
}
// Passes each event after number `after` to `take` until the job's end; returns the call's status.
template <typename Take>
grpc::Status WatchJob(v1::Jobs::Stub* jobs, grpc::ClientContext* context, const std::string& id,
                      uint64_t after, const Take& take) {
  v1::WatchRequest request;
  request.set_job_id(id);
  request.set_after(after);
  const auto stream = jobs->Watch(context, request);
  v1::WatchEvent event;
  while (stream->Read(&event)) take(event);
  return stream->Finish();
}
inline grpc::Status GetJob(v1::Jobs::Stub* jobs, const std::string& id, v1::JobRecord* record) {
  grpc::ClientContext context;
  v1::GetJobRequest request;
  request.set_job_id(id);
  return jobs->GetJob(&context, request, record);
}
inline grpc::Status CancelJob(v1::Jobs::Stub* jobs, const std::string& id, v1::JobRecord* record) {
  grpc::ClientContext context;
  v1::CancelJobRequest request;
  request.set_job_id(id);
  return jobs->CancelJob(&context, request, record);
}
inline grpc::Status Acknowledge(v1::Jobs::Stub* jobs, grpc::ClientContext* context, const std::string& id,
                                uint64_t upto, v1::JobRecord* record) {
  v1::AckRequest request;
  request.set_job_id(id);
  request.set_upto(upto);
  return jobs->Ack(context, request, record);
}

// ---- PSFs and other things that are kept warm.

// `bytes`: the content of an upload.
inline grpc::Status LoadPsf(v1::PsfRegistry::Stub* registry, grpc::ClientContext* context,
                            const v1::LoadPsfHeader& header, v1::PsfInfo* info,
                            const std::string& bytes = "") {
  const auto stream = registry->LoadPsf(context, info);
  v1::LoadPsfRequest request;
  *request.mutable_header() = header;
  stream->Write(request);
  for (size_t sent = 0; sent < bytes.size(); sent += 5000) {
    request.set_payload(bytes.substr(sent, 5000));
    if (!stream->Write(request)) break;
  }
  stream->WritesDone();
  return stream->Finish();
}
inline grpc::Status UnloadPsf(v1::PsfRegistry::Stub* registry, const std::string& hash,
                              v1::WarmKind kind = v1::WARM_KIND_PSF) {
  grpc::ClientContext context;
  v1::UnloadPsfRequest request;
  request.set_hash(hash);
  request.set_kind(kind);
  v1::UnloadPsfResponse response;
  return registry->UnloadPsf(&context, request, &response);
}
inline grpc::Status ListPsfs(v1::PsfRegistry::Stub* registry, const v1::ListPsfsRequest& request,
                             v1::ListPsfsResponse* response) {
  grpc::ClientContext context;
  return registry->ListPsfs(&context, request, response);
}

}  // namespace spexd::testing

#endif  // SPEXD_TESTS_SERVICE_SUPPORT_CALLS_H_
