#include "tests/client/support/stand_in_analysis.h"

#include <stdexcept>

#include "core/base/digest/crc32c.h"

namespace spexd::testing {

v1::ExtractEvent AnalysisAccepted() {
  v1::ExtractEvent event;
  event.mutable_accepted()->set_job_id("analysis-1");
  return event;
}

v1::ExtractEvent FilePartEvent(v1::AnalysisFile file, uint64_t offset, const std::string& payload) {
  constexpr uint64_t kBytes = 10;
  v1::ExtractEvent event;
  v1::FilePart& part = *event.mutable_file();
  part.set_file(file);
  part.set_bytes(kBytes);
  part.set_offset(offset);
  part.set_payload(payload);
  part.set_crc32c(Crc32c(payload));
  part.set_last(offset + payload.size() == kBytes);
  part.set_targets(6);
  part.set_good(2);
  return event;
}

v1::ExtractEvent FailedFileEvent(v1::AnalysisFile file, absl::StatusCode code, const std::string& error) {
  v1::ExtractEvent event;
  event.mutable_file()->set_file(file);
  event.mutable_file()->set_code(static_cast<int>(code));
  event.mutable_file()->set_error(error);
  return event;
}

v1::ExtractEvent AnalysisSummary() {
  v1::ExtractEvent event;
  v1::JobSummary& summary = *event.mutable_summary();
  v1::StageSeconds& stage = *summary.add_stages();
  stage.set_stage("velocity");
  stage.set_seconds(3);
  stage.set_by("cuda");
  summary.set_queue_seconds(1);
  summary.set_run_seconds(4);
  summary.set_last(true);
  return event;
}

StandInAnalysis::StandInAnalysis(std::vector<v1::ExtractEvent> events) : events_(std::move(events)) {
  grpc::ServerBuilder builder;
  int port = 0;
  builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(), &port);
  builder.RegisterService(static_cast<v1::Analysis::Service*>(this));
  server_ = builder.BuildAndStart();
  if (server_ == nullptr) throw std::runtime_error("the stand-in does not start");
  address_ = "127.0.0.1:" + std::to_string(port);
}

v1::AnalysisHeader StandInAnalysis::header() const {
  MutexLock lock(&mutex_);
  return header_;
}

StandInAnalysis::Uploads StandInAnalysis::uploads() const {
  MutexLock lock(&mutex_);
  return uploads_;
}

grpc::Status StandInAnalysis::Analyse(
    grpc::ServerContext* context, grpc::ServerReaderWriter<v1::ExtractEvent, v1::AnalyseRequest>* stream) {
  v1::AnalysisHeader header;
  Uploads uploads;
  for (v1::AnalyseRequest request; stream->Read(&request);) {
    if (request.has_header()) header = request.header();
    if (request.has_chunk())
      uploads[{request.chunk().input(), request.chunk().index()}] += request.chunk().payload();
  }
  {
    MutexLock lock(&mutex_);
    header_ = std::move(header);
    uploads_ = std::move(uploads);
  }
  for (const v1::ExtractEvent& event : events_) stream->Write(event);
  return grpc::Status::OK;
}

}  // namespace spexd::testing
