// What a job tells while it runs.
#ifndef SPEXD_SERVER_MESSAGES_JOB_EVENT_H_
#define SPEXD_SERVER_MESSAGES_JOB_EVENT_H_

#include <cstdint>
#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "core/frame/bundle_spectra.h"
#include "grpcpp/support/byte_buffer.h"
#include "server/messages/convert.h"
#include "spexd/v1/extraction.pb.h"

namespace spexd {

struct StateEvent {
  std::string state;
  int bundles_done = 0;
  int bundles_total = 0;
};
// The frame's information: the first result.
struct FrameInfoEvent {
  std::vector<v1::ExtractEvent> parts;
  int bundles = 0;
  int64_t result_bytes = 0;  // of the arrays of all results that will come
};
struct BundleEvent {
  std::shared_ptr<const BundleSpectra> bundle;
  std::vector<BundlePiece> pieces;  // refer to it
};
// A product, whole.
struct ProductEvent {
  std::vector<v1::ExtractEvent> parts;
};
using JobEvent = std::variant<StateEvent, FrameInfoEvent, BundleEvent, ProductEvent>;

// The event's messages as gRPC sends them. Large arrays are not copied on their way to the socket: the
// messages refer to them and keep what they lie in.
std::vector<grpc::ByteBuffer> ToMessages(JobEvent event);

// The same messages with copies of the arrays in them.
std::vector<v1::ExtractEvent> ToEvents(JobEvent event);

}  // namespace spexd

#endif  // SPEXD_SERVER_MESSAGES_JOB_EVENT_H_
