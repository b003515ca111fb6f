// A client that begins an upload and then waits, to be killed by the test that started it: waiting_client
// ADDRESS FOLDER.
#include <grpcpp/grpcpp.h>

#include <cstdio>
#include <string>

#include "spexd/v1/extraction.grpc.pb.h"
#include "tests/service/inputs.h"

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  const auto stub =
      spexd::v1::Extraction::NewStub(grpc::CreateChannel(argv[1], grpc::InsecureChannelCredentials()));
  grpc::ClientContext context;
  const auto stream = stub->Extract(&context);
  spexd::v1::ExtractRequest request;
  spexd::v1::JobHeader* header = request.mutable_header();
  header->mutable_image()->mutable_raw()->set_rows(spexd::testing::kRows);
  header->mutable_image()->mutable_raw()->set_columns(spexd::testing::kColumns);
  header->mutable_psf()->set_path(std::string(argv[2]) + "/psf.fits");
  spexd::v1::ExtractEvent event;
  if (!stream->Write(request) || !stream->Read(&event)) return 1;
  std::puts("ready to be killed");
  std::fflush(stdout);
  while (stream->Read(&event)) {
  }
  return 0;
}
