// A gRPC server in this process that answers as a test says.
#ifndef SPEXD_TESTS_CLIENT_SUPPORT_STAND_IN_SERVER_H_
#define SPEXD_TESTS_CLIENT_SUPPORT_STAND_IN_SERVER_H_

#include <grpcpp/grpcpp.h>

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/base/threads/mutex.h"
#include "spexd/v1/extraction.grpc.pb.h"
#include "tests/client/support/stand_in_jobs.h"

namespace spexd::testing {

// The answer of Extract to every job.
struct StandInAnswer {
  std::vector<v1::ExtractEvent> events;
  grpc::Status status;
  std::optional<std::chrono::milliseconds> retry_delay = {};  // as RetryInfo
  std::optional<int> pushback_ms = {};                        // as grpc-retry-pushback-ms
  bool holds = false;  // whether the call lasts as long as the server, after the events
};

class StandInServer : private v1::Extraction::Service {
 public:
  // Listens on loopback. Its health is SERVING. `jobs`: a second service, which must outlive this object.
  explicit StandInServer(StandInAnswer answer, StandInJobs* jobs = nullptr);
  ~StandInServer() override;

  const std::string& address() const { return address_; }
  void SetServing(bool serving) { server_->GetHealthCheckService()->SetServingStatus(serving); }
  int calls() const {  // number of Extract calls
    MutexLock lock(&mutex_);
    return calls_;
  }

 private:
  grpc::Status Extract(grpc::ServerContext* context,
                       grpc::ServerReaderWriter<v1::ExtractEvent, v1::ExtractRequest>* stream) override;
  // Answers with an empty message.
  grpc::Status GetCapabilities(grpc::ServerContext* context, const v1::GetCapabilitiesRequest* request,
                               v1::Capabilities* reply) override {
    return grpc::Status::OK;
  }

  const StandInAnswer answer_;
  StandInJobs* const jobs_;  // null: none
  mutable Mutex mutex_;
  CondVar changed_;
  int calls_ ABSL_GUARDED_BY(mutex_) = 0;
  bool ends_ ABSL_GUARDED_BY(mutex_) = false;
  std::string address_;
  std::unique_ptr<grpc::Server> server_;
};

// Returns a refusal with `text` and the delay, as spexd sends it.
grpc::Status RefusalWithRetryInfo(grpc::StatusCode code, const std::string& text,
                                  std::chrono::milliseconds delay);

}  // namespace spexd::testing

#endif  // SPEXD_TESTS_CLIENT_SUPPORT_STAND_IN_SERVER_H_
