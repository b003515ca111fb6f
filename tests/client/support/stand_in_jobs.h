// Detached jobs of a stand-in server: kept in memory, and ended as they are brought.
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
  // Where a call is held until the server ends: a client that was killed there never learns how it went on.
  enum class Stage { kNone, kReceiving, kTaken, kWatching, kEnding, kAcking, kAcked };
  struct Behaviour {
    int lost_answers = 0;  // so many Submit calls take the job and end UNAVAILABLE
    bool refuses = false;  // Submit takes nothing and ends UNAVAILABLE
    // The first Watch calls end UNAVAILABLE after so many events each.
    std::vector<int> breaks = {};
    bool repeats = false;    // Watch begins with an event that came before
    int damaged = 0;         // so many Watch calls have a wrong byte
    bool gap = false;        // event 3 never comes
    grpc::Status end = {};   // what jobs end with
    bool cancelled = false;  // someone cancelled them
    bool runs = false;       // they never end
    bool model = false;
    bool hangs = false;          // GetJob and Ack never answer
    bool mute = false;           // Submit takes the job and never answers
    Stage holds = Stage::kNone;  // the first call that comes there
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
  // Wait until there is a job, or until a call hangs.
  void AwaitJob();
  void AwaitHang();
  // `after` of each Watch call so far.
  std::vector<uint64_t> watched() const;
  // Calls that hang come back. To be called before the server is shut down.
  void End();

 private:
  grpc::Status Submit(grpc::ServerContext* context, grpc::ServerReader<v1::SubmitRequest>* stream,
                      v1::SubmitReply* reply) override;
  grpc::Status Watch(grpc::ServerContext* context, const v1::WatchRequest* request,
                     grpc::ServerWriter<v1::WatchEvent>* stream) override;
  grpc::Status GetJob(grpc::ServerContext* context, const v1::GetJobRequest* request,
                      v1::JobRecord* record) override;
  // Pages of two.
  grpc::Status ListJobs(grpc::ServerContext* context, const v1::ListJobsRequest* request,
                        v1::ListJobsResponse* response) override;
  grpc::Status CancelJob(grpc::ServerContext* context, const v1::CancelJobRequest* request,
                         v1::JobRecord* record) override;
  grpc::Status Ack(grpc::ServerContext* context, const v1::AckRequest* request,
                   v1::JobRecord* record) override;

  // Whether this call is to be held here.
  bool HoldsAt(Stage stage);
  // Until the server ends, whether the client is there or not.
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
