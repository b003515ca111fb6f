// The events that a job sends while it runs.
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

// The job has entered a state or made progress in it.
struct StateEvent {
  std::string state;
  int bundles_done = 0;
  int bundles_total = 0;
};
// The frame's information, which is the first result.
struct FrameInfoEvent {
  std::vector<v1::ExtractEvent> parts;
  int bundles = 0;
  int64_t result_bytes = 0;  // bytes of the arrays of all results that will come
};
struct BundleEvent {
  std::shared_ptr<const BundleSpectra> bundle;
  std::vector<BundlePiece> pieces;  // refer to `bundle`
};
// A complete product, or a complete file of an analysis.
struct ProductEvent {
  std::vector<v1::ExtractEvent> parts;
};
using JobEvent = std::variant<StateEvent, FrameInfoEvent, BundleEvent, ProductEvent>;

// Returns the event's messages as gRPC's buffers. Large arrays are not copied: the buffers refer to them and
// keep their owners.
std::vector<grpc::ByteBuffer> ToMessages(JobEvent event);

// Returns the event's messages with copies of the arrays.
std::vector<v1::ExtractEvent> ToEvents(JobEvent event);

}  // namespace spexd

#endif  // SPEXD_SERVER_MESSAGES_JOB_EVENT_H_
