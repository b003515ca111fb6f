// A server made of scripts, which say how each Extract call is answered.
#ifndef SPEXD_TESTS_CLIENT_FAKE_CONNECTION_H_
#define SPEXD_TESTS_CLIENT_FAKE_CONNECTION_H_

#include <memory>
#include <string>
#include <vector>

#include "client/connection.h"

namespace spexd::testing {

struct Script {
  std::vector<v1::ExtractEvent> events;
  client::CallResult result;
};

class FakeConnection : public client::Connection {
 public:
  explicit FakeConnection(std::vector<Script> scripts) : scripts_(std::move(scripts)) {}

  std::unique_ptr<client::ExtractStream> Extract(Deadline deadline) override;
  absl::StatusOr<v1::Capabilities> GetCapabilities(Deadline deadline) override;
  absl::StatusOr<v1::PsfInfo> LoadPsf(const v1::LoadPsfHeader& header, const PieceSource& pieces,
                                      Deadline deadline) override;
  absl::StatusOr<v1::ListPsfsResponse> ListPsfs(Deadline deadline) override;
  absl::Status UnloadPsf(const std::string& hash, Deadline deadline) override;

  size_t calls = 0;
  std::vector<v1::ExtractRequest> requests;  // requests of the last call
  std::string psf_bytes;                     // bytes that LoadPsf was given

 private:
  std::vector<Script> scripts_;
};

// The events of a good job: fibres 10 to 14 in bundles of 2 and 3, 4 bins; values tell fibre and bin.
inline constexpr int kFirst = 10, kFibres = 5, kBins = 4;
v1::ExtractEvent Info(bool model = false);
v1::ExtractEvent Part(int bundle, int first, int count, bool last = true);
v1::ExtractEvent Model(int bundle, float value);
v1::ExtractEvent Summary();
std::vector<v1::ExtractEvent> GoodEvents();
void SetChecksum(v1::BundlePart* part);

}  // namespace spexd::testing

#endif  // SPEXD_TESTS_CLIENT_FAKE_CONNECTION_H_
