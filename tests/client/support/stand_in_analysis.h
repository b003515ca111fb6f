// The events of analyses, and a gRPC server in this process that answers Analyse with them.
#ifndef SPEXD_TESTS_CLIENT_SUPPORT_STAND_IN_ANALYSIS_H_
#define SPEXD_TESTS_CLIENT_SUPPORT_STAND_IN_ANALYSIS_H_

#include <grpcpp/grpcpp.h>

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "core/base/threads/mutex.h"
#include "spexd/v1/analysis.grpc.pb.h"

namespace spexd::testing {

v1::ExtractEvent AnalysisAccepted();
// Returns a part of a file of 10 bytes with 6 targets, 2 of them good.
v1::ExtractEvent FilePartEvent(v1::AnalysisFile file, uint64_t offset, const std::string& payload);
v1::ExtractEvent FailedFileEvent(v1::AnalysisFile file, absl::StatusCode code, const std::string& error);
// Returns a summary: 1 s in the queue, 4 s of work, 3 s of these for velocities on a GPU.
v1::ExtractEvent AnalysisSummary();

class StandInAnalysis : private v1::Analysis::Service {
 public:
  using Uploads = std::map<std::pair<v1::Input, uint32_t>, std::string>;  // bytes by input and index

  // Listens on loopback.
  explicit StandInAnalysis(std::vector<v1::ExtractEvent> events);

  const std::string& address() const { return address_; }
  // The header and the uploads of the last call.
  v1::AnalysisHeader header() const;
  Uploads uploads() const;

 private:
  grpc::Status Analyse(grpc::ServerContext* context,
                       grpc::ServerReaderWriter<v1::ExtractEvent, v1::AnalyseRequest>* stream) override;

  const std::vector<v1::ExtractEvent> events_;
  mutable Mutex mutex_;
  v1::AnalysisHeader header_ ABSL_GUARDED_BY(mutex_);
  Uploads uploads_ ABSL_GUARDED_BY(mutex_);
  std::string address_;
  std::unique_ptr<grpc::Server> server_;
};

}  // namespace spexd::testing

#endif  // SPEXD_TESTS_CLIENT_SUPPORT_STAND_IN_ANALYSIS_H_
