// A server that answers each call of Extract or Analyse with a script.
#ifndef SPEXD_TESTS_CLIENT_SUPPORT_FAKE_CONNECTION_H_
#define SPEXD_TESTS_CLIENT_SUPPORT_FAKE_CONNECTION_H_

#include <memory>
#include <string>
#include <vector>

#include "client/connection/connection.h"
#include "client/job.h"

namespace spexd::testing {

struct Script {
  std::vector<v1::ExtractEvent> events;
  client::CallResult result;
};

// Returns a job for servers that read no files.
inline client::Job SomeJob() {
  client::Job job;
  job.image = "image.fits";
  job.psf = "psf.fits";
  return job;
}

class FakeConnection : public client::Connection {
 public:
  explicit FakeConnection(std::vector<Script> scripts) : scripts_(std::move(scripts)) {}

  const std::string& address() const override { return name; }
  absl::Status CheckServing(Deadline deadline, const std::stop_token& stop) override { return health; }
  std::unique_ptr<client::ExtractStream> Extract(Deadline deadline) override;
  std::unique_ptr<client::AnalyseStream> Analyse(Deadline deadline) override;
  absl::StatusOr<v1::Capabilities> GetCapabilities(Deadline deadline) override;
  absl::StatusOr<v1::PsfInfo> LoadPsf(const v1::LoadPsfHeader& header, const PieceSource& pieces,
                                      Deadline deadline) override;
  absl::StatusOr<v1::ListPsfsResponse> ListPsfs(const v1::ListPsfsRequest& request,
                                                Deadline deadline) override;
  absl::Status UnloadPsf(const std::string& hash, v1::WarmKind kind, Deadline deadline) override;
  // This server keeps no jobs; stand_in_server.h does.
  std::unique_ptr<client::SubmitStream> Submit(Deadline deadline) override { return nullptr; }
  std::unique_ptr<client::WatchStream> Watch(const v1::WatchRequest& request, Deadline deadline) override {
    return nullptr;
  }
  absl::StatusOr<v1::JobRecord> GetJob(const std::string& job_id, Deadline deadline,
                                       const std::stop_token& stop) override {
    return KeepsNoJobs();
  }
  absl::StatusOr<v1::ListJobsResponse> ListJobs(const v1::ListJobsRequest& request, Deadline deadline,
                                                const std::stop_token& stop) override {
    return KeepsNoJobs();
  }
  absl::StatusOr<v1::JobRecord> CancelJob(const std::string& job_id, Deadline deadline) override {
    return KeepsNoJobs();
  }
  absl::StatusOr<v1::JobRecord> Ack(const std::string& job_id, uint64_t upto, Deadline deadline,
                                    const std::stop_token& stop) override {
    return KeepsNoJobs();
  }

  std::string name = "fake:1";
  absl::Status health;  // what CheckServing returns
  size_t calls = 0;
  std::vector<v1::ExtractRequest> requests;  // requests of the last call, if it was Extract
  std::vector<v1::AnalyseRequest> analyses;  // requests of the last call, if it was Analyse
  std::string psf_bytes;                     // bytes that LoadPsf received
  int psfs = 0;                              // number of warm PSFs, listed in pages of two

 private:
  Script NextScript();
  static absl::Status KeepsNoJobs() { return absl::FailedPreconditionError("the fake keeps no jobs"); }

  std::vector<Script> scripts_;
};

// The events of a good job: fibres 10 to 14 in bundles of 2 and 3, 4 bins. Values identify fibre and bin.
inline constexpr int kEventFirst = 10, kEventFibres = 5, kEventBins = 4;
v1::ExtractEvent Info(bool model = false);
v1::ExtractEvent Part(int bundle, int first, int count, bool last = true);
v1::ExtractEvent Model(int bundle, float value);
v1::ExtractEvent Summary();
std::vector<v1::ExtractEvent> GoodEvents();
void SetChecksum(v1::BundlePart* part);

}  // namespace spexd::testing

#endif  // SPEXD_TESTS_CLIENT_SUPPORT_FAKE_CONNECTION_H_
