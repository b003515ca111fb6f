// consumer SERVER IMAGE PSF FRAME: extracts 3 fibres on a server with the installed library, and writes them.
#include <iostream>

#include "client/connection/grpc_connection.h"
#include "client/extract_client.h"
#include "core/fits/writers.h"
#include "spexd/v1/extraction.pb.h"

int main(int argc, char** argv) {
  if (argc != 5) return 2;
  const auto connection = spexd::client::MakeGrpcConnection(argv[1]);
  spexd::client::Job job;
  job.image = argv[2];
  job.psf = argv[3];
  job.spec.fibre_count = 3;
  spexd::client::RemoteExtractor extractor(connection.get(), {.upload = true});
  const absl::StatusOr<spexd::JobOutcome> outcome = extractor.Run(job, nullptr, {});
  absl::Status status = outcome.status();
  if (status.ok()) status = spexd::WriteFrame(outcome->frame, argv[4]);
  if (!status.ok()) std::cerr << status << "\n";
  return status.ok() ? 0 : 1;
}
