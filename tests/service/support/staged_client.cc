// A client that goes as far as a stage of a job and then waits until the test that started it kills it:
// staged_client ADDRESS FOLDER STAGE.
//
// STAGE: header (accepted), input (half of it sent), queued, running, or results (the first bundle has
// arrived; no more are read).
#include <grpcpp/grpcpp.h>
#include <signal.h>

#include <cstdio>
#include <string>

#include "spexd/v1/extraction.grpc.pb.h"
#include "tests/service/support/inputs.h"

namespace {

using Stream = grpc::ClientReaderWriter<spexd::v1::ExtractRequest, spexd::v1::ExtractEvent>;

// The thread sanitizer makes the engine more than ten times slower. Bins of twice the width take an eighth of
// the time.
#if defined(__SANITIZE_THREAD__)
constexpr int kBins = 500;
#else
constexpr int kBins = 1000;
#endif

// Bundles of one fibre with bins so fine that each takes a while.
spexd::v1::ExtractRequest Header(const std::string& folder) {
  spexd::v1::ExtractRequest request;
  spexd::v1::JobHeader* header = request.mutable_header();
  header->mutable_image()->mutable_raw()->set_rows(spexd::testing::kRows);
  header->mutable_image()->mutable_raw()->set_columns(spexd::testing::kColumns);
  header->mutable_psf()->set_path(folder + "/psf.fits");
  header->mutable_grid()->set_first(spexd::testing::kWaveMin);
  header->mutable_grid()->set_step(40.0 / kBins);
  header->mutable_grid()->set_count(kBins);
  header->set_bundle_size(1);
  return request;
}

bool Send(Stream* stream, const std::string& bytes) {
  spexd::v1::ExtractRequest request;
  request.mutable_chunk()->set_input(spexd::v1::INPUT_IMAGE);
  request.mutable_chunk()->set_payload(bytes);
  return stream->Write(request);
}

bool SendRest(Stream* stream, const std::string& bytes, size_t sent) {
  spexd::v1::ExtractRequest request;
  request.mutable_chunk()->set_input(spexd::v1::INPUT_IMAGE);
  request.mutable_chunk()->set_offset(sent);
  request.mutable_chunk()->set_payload(bytes.substr(sent));
  if (!stream->Write(request)) return false;
  request.mutable_end()->set_input(spexd::v1::INPUT_IMAGE);
  return stream->Write(request) && stream->WritesDone();
}

bool HasCome(const spexd::v1::ExtractEvent& event, const std::string& stage) {
  if (stage == "queued") return event.progress().state() == "queued";
  if (stage == "running") return event.progress().state() == "extracting";
  return event.has_bundle();
}

bool GoTo(Stream* stream, const std::string& folder, const std::string& stage) {
  spexd::v1::ExtractEvent event;
  if (!stream->Write(Header(folder)) || !stream->Read(&event) || !event.has_accepted()) return false;
  if (stage == "header") return true;
  const std::string bytes = spexd::testing::RawArrays(spexd::testing::kRows, spexd::testing::kColumns);
  if (!Send(stream, bytes.substr(0, bytes.size() / 2))) return false;
  if (stage == "input") return true;
  if (!SendRest(stream, bytes, bytes.size() / 2)) return false;
  while (stream->Read(&event)) {
    if (HasCome(event, stage)) return true;
  }
  return false;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 4) return 2;
  const auto stub =
      spexd::v1::Extraction::NewStub(grpc::CreateChannel(argv[1], grpc::InsecureChannelCredentials()));
  grpc::ClientContext context;
  const auto stream = stub->Extract(&context);
  if (!GoTo(stream.get(), argv[2], argv[3])) return 1;
  std::puts("ready to be killed");
  std::fflush(stdout);
  sigset_t none;
  sigemptyset(&none);
  sigsuspend(&none);
  return 0;
}
