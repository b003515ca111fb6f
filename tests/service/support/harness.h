// A server with a fake engine on its own ports, and a client on a real channel.
#ifndef SPEXD_TESTS_SERVICE_SUPPORT_HARNESS_H_
#define SPEXD_TESTS_SERVICE_SUPPORT_HARNESS_H_

#include <gtest/gtest.h>

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

#include "core/extract/engine.h"
#include "grpcpp/grpcpp.h"
#include "server/config/options.h"
#include "spexd/v1/extraction.grpc.pb.h"
#include "spexd/v1/rpc_details.pb.h"
#include "tests/service/support/calls.h"
#include "tests/service/support/fake_engine.h"
#include "tests/service/support/inputs.h"
#include "tests/support/eventually.h"

namespace spexd {

// server/server.h takes long to compile, so only tests that call the server include it.
class Server;

namespace testing {

inline constexpr int kServing = 1, kNotServing = 2;  // values of grpc.health.v1

// The result of an Extract call.
struct Answer {
  grpc::Status status;
  std::vector<v1::ExtractEvent> events;
  std::multimap<std::string, std::string> trailers;

  std::string message() const { return status.error_message(); }
  std::vector<const v1::BundlePart*> parts() const;
  std::vector<std::string> states() const;
  const v1::JobSummary* summary() const;  // the last event; null if it did not arrive
  const v1::FrameInfo* frame_info() const;
  // Returns the delay of RetryInfo in grpc-status-details-bin in seconds; -1 if there is none.
  double retry_seconds() const;
};

// Returns the end of a call without events.
Answer Ended(const grpc::Status& status, const grpc::ClientContext& context);

class ServiceTest : public ::testing::Test {
 protected:
  using Stream = ExtractStream;

  ServiceTest();
  ~ServiceTest() override;

  // Makes the identity "user" known to the server; the fixture's calls then come from it. `shares`: kinds and
  // values of its lines in the identities file, such as {"queue-share 0.5"}. REQUIRES: the server is not
  // started yet.
  void BecomeUser(const std::vector<std::string>& shares);
  // Adds the user's token to a call outside of this fixture, if BecomeUser was called.
  void ShowCaller(grpc::ClientContext* context) const;

  // Starts the server, by default on the fake engine. options_ may be changed before.
  void Start(std::unique_ptr<Engine> engine = nullptr);
  std::shared_ptr<grpc::Channel> NewChannel() const;
  std::unique_ptr<v1::Extraction::Stub> NewStub() const { return v1::Extraction::NewStub(NewChannel()); }

  // Returns a header with inputs by path, all fibres, bundles of 4.
  v1::JobHeader PathHeader() const { return testing::PathHeader(folder_, 4); }
  // Returns a header with the image as raw arrays and the PSF by its path.
  v1::JobHeader RawHeader() const { return testing::RawHeader(folder_, 4); }
  static UploadData RawUpload() { return {v1::INPUT_IMAGE, RawArrays(kRows, kColumns), ""}; }

  Answer Extract(const v1::JobHeader& header, const std::vector<UploadData>& uploads = {},
                 grpc::ClientContext* context = nullptr);
  // Reads the remaining events and the status.
  static Answer Finish(Stream* stream, grpc::ClientContext* context);

  // A call of Extract whose answer comes later.
  struct Call {
    grpc::ClientContext context;
    std::unique_ptr<v1::Extraction::Stub> stub;
    std::unique_ptr<Stream> stream;
    v1::ExtractEvent accepted;  // set if it was read
  };
  // Sends the header.
  std::unique_ptr<Call> Send(const v1::JobHeader& header,
                             std::chrono::milliseconds timeout = std::chrono::hours(1)) const;
  // Sends the header and reads Accepted.
  std::unique_ptr<Call> Begin(const v1::JobHeader& header,
                              std::chrono::milliseconds timeout = std::chrono::hours(1)) const;
  static Answer End(Call* call) { return Finish(call->stream.get(), &call->context); }

  // Makes each job that the engine extracts wait after this number of bundles.
  void CloseGateAfter(int bundles);
  void OpenGate();
  // Waits until this number of jobs waits at the gate.
  bool AtGate(int jobs);
  // Starts a job of PathHeader and closes the engine's gate for it. Returns the job once it waits there; null
  // if it does not.
  std::unique_ptr<Call> HoldJobAtGate();
  // Opens the gate and waits for the job's end.
  Answer LetGo(Call* job);

  // GETs a path of the HTTP port; returns status code and body.
  std::pair<int, std::string> Get(const std::string& path) const;
  // Returns the value of a line of /metrics ("spexd_jobs_total{outcome=\"ok\"}"), -1 if there is none.
  double Metric(const std::string& series) const;
  v1::Capabilities Status() const;
  // Calls grpc.health.v1.Health/Check of a service; returns its status as a number, -1 for an error.
  int Health(const std::string& service) const;

  InputFolder folder_;
  ServerOptions options_;
  std::ostringstream log_;  // read it only after the server stopped
  std::shared_ptr<EngineControl> engine_ = std::make_shared<EngineControl>();
  std::unique_ptr<Server> server_;
  std::string user_token_;  // "": calls have no credentials
};

}  // namespace testing
}  // namespace spexd

#endif  // SPEXD_TESTS_SERVICE_SUPPORT_HARNESS_H_
