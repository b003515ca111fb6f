// Detached jobs of a stand-in server. They are kept in memory, and end when they are submitted.
#ifndef SPEXD_TESTS_CLIENT_SUPPORT_STAND_IN_JOBS_H_
#define SPEXD_TESTS_CLIENT_SUPPORT_STAND_IN_JOBS_H_

#include <grpcpp/grpcpp.h>

#include <cstdint>
#include <string>
#include <vector>

#include "core/base/threads/mutex.h"
#include "spexd/v1/jobs.grpc.pb.h"

namespace spexd::testing {

class StandInJobs : public v1::Jobs::Service {
 public:
  // Where a call is held until the server ends. A client that is killed there never learns the outcome.
  enum class Stage { kNone, kReceiving, kTaken, kWatching, kEnding, kAcking, kAcked };
  struct Behaviour {
    int lost_answers = 0;  // number of Submit calls that take the job and end UNAVAILABLE
    bool refuses = false;  // whether Submit takes nothing and ends UNAVAILABLE
    // The first Watch calls end UNAVAILABLE after these numbers of events.
    std::vector<int> breaks = {};
    bool repeats = false;    // whether Watch begins with an event that came before
    int damaged = 0;         // number of Watch calls with a wrong byte
    bool gap = false;        // whether event 3 is missing
    grpc::Status end = {};   // the end of jobs
    bool cancelled = false;  // whether someone cancelled the jobs
    bool runs = false;       // whether jobs never end
    bool model = false;
    bool hangs = false;          // whether GetJob and Ack never answer
    bool mute = false;           // whether Submit takes the job and never answers
    Stage holds = Stage::kNone;  // where the first call that arrives is held
    uint64_t holds_before = 1;   // Stage::kWatching: the event
  };
  struct Job {
    v1::JobRecord record;
    v1::SubmitHeader header;
    std::string bytes;  // of all uploads
  };

  StandInJobs() = default;
  explicit StandInJobs(Behaviour behaviour) : behaviour_(std::move(behaviour)) {}

  std::vector<Job> jobs() const;
  // Wait until there is a job (AwaitJob), or until a call hangs (AwaitHang).
  void AwaitJob();
  void AwaitHang();
  // Returns `after` of each Watch call so far.
  std::vector<uint64_t> watched() const;
  // Makes hanging calls return. To be called before the server is shut down.
  void End();

 private:
  grpc::Status Submit(grpc::ServerContext* context, grpc::ServerReader<v1::SubmitRequest>* stream,
                      v1::SubmitReply* reply) override;
  grpc::Status Watch(grpc::ServerContext* context, const v1::WatchRequest* request,
                     grpc::ServerWriter<v1::WatchEvent>* stream) override;
  grpc::Status GetJob(grpc::ServerContext* context, const v1::GetJobRequest* request,
                      v1::JobRecord* record) override;
  // Returns pages of two.
  grpc::Status ListJobs(grpc::ServerContext* context, const v1::ListJobsRequest* request,
                        v1::ListJobsResponse* response) override;
  grpc::Status CancelJob(grpc::ServerContext* context, const v1::CancelJobRequest* request,
                         v1::JobRecord* record) override;
  grpc::Status Ack(grpc::ServerContext* context, const v1::AckRequest* request,
                   v1::JobRecord* record) override;

  // Returns whether this call is to be held here.
  bool HoldsAt(Stage stage);
  // Waits until the server ends, whether the client is there or not.
  grpc::Status Hang();
  grpc::Status Take(Job job, v1::SubmitReply* reply);
  v1::JobRecord NewRecord(const v1::SubmitHeader& header) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  Job* Find(const std::string& job_id) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const Behaviour behaviour_;
  mutable Mutex mutex_;
  CondVar changed_;
  bool hangs_ ABSL_GUARDED_BY(mutex_) = false;
  bool held_ ABSL_GUARDED_BY(mutex_) = false;
  bool ends_ ABSL_GUARDED_BY(mutex_) = false;
  int lost_ ABSL_GUARDED_BY(mutex_) = 0;
  std::vector<Job> jobs_ ABSL_GUARDED_BY(mutex_);
  std::vector<uint64_t> watched_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace spexd::testing

#endif  // SPEXD_TESTS_CLIENT_SUPPORT_STAND_IN_JOBS_H_
