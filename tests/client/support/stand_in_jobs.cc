#include "tests/client/support/stand_in_jobs.h"

#include <algorithm>

#include "tests/client/support/fake_connection.h"

namespace spexd::testing {
namespace {

using grpc::StatusCode;

grpc::Status NoJob() { return grpc::Status(StatusCode::NOT_FOUND, "no such job"); }

std::vector<v1::ExtractEvent> NumberedEvents(bool model) {
  if (model) return {Info(true), Model(1, 2), Part(1, 12, 3), Model(0, 1), Part(0, 10, 2), Summary()};
  std::vector<v1::ExtractEvent> events = GoodEvents();
  events.erase(events.begin());  // Accepted
  return events;
}

}  // namespace

std::vector<StandInJobs::Job> StandInJobs::jobs() const {
  MutexLock lock(&mutex_);
  return jobs_;
}

std::vector<uint64_t> StandInJobs::watched() const {
  MutexLock lock(&mutex_);
  return watched_;
}

void StandInJobs::AwaitJob() {
  MutexLock lock(&mutex_);
  while (jobs_.empty()) changed_.Wait(&mutex_);
}

void StandInJobs::AwaitHang() {
  MutexLock lock(&mutex_);
  while (!hangs_) changed_.Wait(&mutex_);
}

void StandInJobs::End() {
  MutexLock lock(&mutex_);
  ends_ = true;
  changed_.NotifyAll();
}

bool StandInJobs::HoldsAt(Stage stage) {
  MutexLock lock(&mutex_);
  return behaviour_.holds == stage && !std::exchange(held_, true);
}

grpc::Status StandInJobs::Hang() {
  MutexLock lock(&mutex_);
  hangs_ = true;
  changed_.NotifyAll();
  while (!ends_) changed_.Wait(&mutex_);
  return grpc::Status::CANCELLED;
}

StandInJobs::Job* StandInJobs::Find(const std::string& job_id) {
  for (Job& job : jobs_) {
    if (job.record.job_id() == job_id) return &job;
  }
  return nullptr;
}

v1::JobRecord StandInJobs::NewRecord(const v1::SubmitHeader& header) const {
  v1::JobRecord record;
  record.set_job_id("job-" + std::to_string(jobs_.size() + 1));
  record.set_request_id(header.request_id());
  record.set_priority(header.job().priority());
  record.set_image(header.job().image().has_upload() ? header.job().image().upload().name()
                                                     : header.job().image().path());
  record.set_submitted(1.7e9);
  record.set_state(v1::DETACHED_STATE_DONE);
  record.set_last_sequence(NumberedEvents(behaviour_.model).size());
  if (behaviour_.runs) record.set_state(v1::DETACHED_STATE_RUNNING);
  if (!behaviour_.end.ok()) record.set_state(v1::DETACHED_STATE_FAILED);
  if (behaviour_.cancelled) record.set_state(v1::DETACHED_STATE_CANCELLED);
  record.set_code(behaviour_.end.error_code());
  record.set_message(behaviour_.end.error_message());
  return record;
}

grpc::Status StandInJobs::Submit(grpc::ServerContext* context, grpc::ServerReader<v1::SubmitRequest>* stream,
                                 v1::SubmitReply* reply) {
  if (HoldsAt(Stage::kReceiving)) return Hang();
  Job job;
  for (v1::SubmitRequest request; stream->Read(&request);) {
    if (request.has_header()) job.header = request.header();
    if (request.has_chunk()) job.bytes += request.chunk().payload();
  }
  if (behaviour_.refuses) return grpc::Status(StatusCode::UNAVAILABLE, "the disk cannot be written");
  const grpc::Status status = Take(std::move(job), reply);
  return behaviour_.mute || HoldsAt(Stage::kTaken) ? Hang() : status;
}

grpc::Status StandInJobs::Take(Job job, v1::SubmitReply* reply) {
  MutexLock lock(&mutex_);
  changed_.NotifyAll();
  const auto same = std::find_if(jobs_.begin(), jobs_.end(), [&job](const Job& other) {
    return other.header.request_id() == job.header.request_id();
  });
  reply->set_existed(same != jobs_.end());
  if (same == jobs_.end()) job.record = NewRecord(job.header);
  reply->set_job_id(same == jobs_.end() ? job.record.job_id() : same->record.job_id());
  if (same == jobs_.end()) jobs_.push_back(std::move(job));
  if (lost_++ < behaviour_.lost_answers) return grpc::Status(StatusCode::UNAVAILABLE, "connection lost");
  return grpc::Status::OK;
}

grpc::Status StandInJobs::Watch(grpc::ServerContext* context, const v1::WatchRequest* request,
                                grpc::ServerWriter<v1::WatchEvent>* stream) {
  size_t call = 0;
  {
    MutexLock lock(&mutex_);
    const Job* job = Find(request->job_id());
    if (job == nullptr) return NoJob();
    call = watched_.size();
    watched_.push_back(request->after());
    if (request->after() < job->record.acknowledged()) {
      return grpc::Status(StatusCode::OUT_OF_RANGE, "the results were released");
    }
  }
  const int most = call < behaviour_.breaks.size() ? behaviour_.breaks[call] : -1;
  v1::WatchEvent event;
  event.mutable_event()->mutable_accepted()->set_job_id(request->job_id());
  stream->Write(event);
  const std::vector<v1::ExtractEvent> events = NumberedEvents(behaviour_.model);
  const uint64_t first = request->after() + 1 - (behaviour_.repeats && request->after() > 0 ? 1 : 0);
  int sent = 0;
  for (uint64_t sequence = first; sequence <= events.size(); ++sequence) {
    if (sequence == behaviour_.holds_before && HoldsAt(Stage::kWatching)) return Hang();
    if (sent++ == most) return grpc::Status(StatusCode::UNAVAILABLE, "the server stops");
    if (behaviour_.gap && sequence == 3) continue;
    event.set_sequence(sequence);
    *event.mutable_event() = events[sequence - 1];
    if (static_cast<int>(call) < behaviour_.damaged && sequence == 2) {
      (*event.mutable_event()->mutable_bundle()->mutable_flux())[1] ^= 1;
    }
    stream->Write(event);
    if (behaviour_.runs && sequence == 3) return Hang();
  }
  if (HoldsAt(Stage::kEnding)) return Hang();
  if (behaviour_.cancelled) return grpc::Status(StatusCode::CANCELLED, "cancelled by an operator");
  return behaviour_.end;
}

grpc::Status StandInJobs::GetJob(grpc::ServerContext* context, const v1::GetJobRequest* request,
                                 v1::JobRecord* record) {
  if (behaviour_.hangs) return Hang();
  MutexLock lock(&mutex_);
  const Job* job = Find(request->job_id());
  if (job == nullptr) return NoJob();
  *record = job->record;
  return grpc::Status::OK;
}

grpc::Status StandInJobs::ListJobs(grpc::ServerContext* context, const v1::ListJobsRequest* request,
                                   v1::ListJobsResponse* response) {
  MutexLock lock(&mutex_);
  size_t next = request->page_token().empty() ? 0 : std::stoul(request->page_token());
  for (; next < jobs_.size() && response->jobs_size() < 2; ++next) {
    const v1::JobRecord& record = jobs_[next].record;
    const auto& states = request->states();
    if (!states.empty() && std::find(states.begin(), states.end(), record.state()) == states.end()) continue;
    *response->add_jobs() = record;
  }
  if (next < jobs_.size()) response->set_next_page_token(std::to_string(next));
  return grpc::Status::OK;
}

grpc::Status StandInJobs::CancelJob(grpc::ServerContext* context, const v1::CancelJobRequest* request,
                                    v1::JobRecord* record) {
  MutexLock lock(&mutex_);
  Job* job = Find(request->job_id());
  if (job == nullptr) return NoJob();
  if (job->record.state() == v1::DETACHED_STATE_RUNNING) job->record.set_state(v1::DETACHED_STATE_CANCELLED);
  *record = job->record;
  return grpc::Status::OK;
}

grpc::Status StandInJobs::Ack(grpc::ServerContext* context, const v1::AckRequest* request,
                              v1::JobRecord* record) {
  if (behaviour_.hangs || HoldsAt(Stage::kAcking)) return Hang();
  {
    MutexLock lock(&mutex_);
    Job* job = Find(request->job_id());
    if (job == nullptr) return NoJob();
    job->record.set_acknowledged(request->upto());
    *record = job->record;
  }
  return HoldsAt(Stage::kAcked) ? Hang() : grpc::Status::OK;
}

}  // namespace spexd::testing
