// A server with a fake engine on ports of its own, and a client on a real channel.
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

// server/server.h takes long to compile: only tests that call the server include it.
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
  const v1::JobSummary* summary() const;  // the last piece; null if none came
  const v1::FrameInfo* frame_info() const;
  // The delay of RetryInfo in grpc-status-details-bin, seconds; -1 if there is none.
  double retry_seconds() const;
};

// A call's end without events.
Answer Ended(const grpc::Status& status, const grpc::ClientContext& context);

class ServiceTest : public ::testing::Test {
 protected:
  using Stream = ExtractStream;

  ServiceTest();
  ~ServiceTest() override;

  // The server knows the identity "user", and the calls of this fixture come from it. `shares`: kinds and
  // values of its lines in the identities file, such as {"queue-share 0.5"}. REQUIRES: not started yet.
  void BecomeUser(const std::vector<std::string>& shares);
  // For calls beside those of this fixture: adds the user's token, if BecomeUser was called.
  void ShowCaller(grpc::ClientContext* context) const;

  // Starts the server, on the fake engine unless given one; options_ may be changed before.
  void Start(std::unique_ptr<Engine> engine = nullptr);
  std::shared_ptr<grpc::Channel> NewChannel() const;
  std::unique_ptr<v1::Extraction::Stub> NewStub() const { return v1::Extraction::NewStub(NewChannel()); }

  // A header with inputs by path, all fibres, bundles of 4.
  v1::JobHeader PathHeader() const { return testing::PathHeader(folder_, 4); }
  // A header with the image as raw arrays and the PSF by its path.
  v1::JobHeader RawHeader() const { return testing::RawHeader(folder_, 4); }
  static UploadData RawUpload() { return {v1::INPUT_IMAGE, RawArrays(kRows, kColumns), ""}; }

  Answer Extract(const v1::JobHeader& header, const std::vector<UploadData>& uploads = {},
                 grpc::ClientContext* context = nullptr);
  // Reads what is left and the status.
  static Answer Finish(Stream* stream, grpc::ClientContext* context);

  // A call of Extract whose answer comes later.
  struct Call {
    grpc::ClientContext context;
    std::unique_ptr<v1::Extraction::Stub> stub;
    std::unique_ptr<Stream> stream;
    v1::ExtractEvent accepted;  // if it was read
  };
  // Sends the header.
  std::unique_ptr<Call> Send(const v1::JobHeader& header,
                             std::chrono::milliseconds timeout = std::chrono::hours(1)) const;
  // Sends the header and reads Accepted.
  std::unique_ptr<Call> Begin(const v1::JobHeader& header,
                              std::chrono::milliseconds timeout = std::chrono::hours(1)) const;
  static Answer End(Call* call) { return Finish(call->stream.get(), &call->context); }

  // Lets each job that the engine extracts wait behind so many bundles.
  void CloseGateAfter(int bundles);
  void OpenGate();
  // Waits until so many jobs wait at the gate.
  bool AtGate(int jobs);
  // A job of PathHeader that waits at the engine's gate, which is closed for it; null if it does not come
  // there.
  std::unique_ptr<Call> HoldJobAtGate();
  // Opens the gate, and waits for the job's end.
  Answer LetGo(Call* job);

  // GET of the HTTP port: status code and body.
  std::pair<int, std::string> Get(const std::string& path) const;
  // The value of a line of /metrics ("spexd_jobs_total{outcome=\"ok\"}"), -1 if there is none.
  double Metric(const std::string& series) const;
  v1::Capabilities Status() const;
  // grpc.health.v1.Health/Check of a service: its status as a number, -1 for an error.
  int Health(const std::string& service) const;

  InputFolder folder_;
  ServerOptions options_;
  std::ostringstream log_;  // read it only after the server stopped
  std::shared_ptr<EngineControl> engine_ = std::make_shared<EngineControl>();
  std::unique_ptr<Server> server_;
  std::string user_token_;  // "": calls show nothing of their caller
};

}  // namespace testing
}  // namespace spexd

#endif  // SPEXD_TESTS_SERVICE_SUPPORT_HARNESS_H_
