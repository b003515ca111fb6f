// Conversion of Extract's events to gRPC's buffers.
#ifndef SPEXD_SERVER_MESSAGES_EVENT_MESSAGES_H_
#define SPEXD_SERVER_MESSAGES_EVENT_MESSAGES_H_

#include <memory>

#include "core/frame/bundle_spectra.h"
#include "grpcpp/support/byte_buffer.h"
#include "server/messages/convert.h"
#include "spexd/v1/extraction.pb.h"

namespace spexd {

// Serialises an event.
grpc::ByteBuffer ToMessage(const v1::ExtractEvent& event);

// Serialises an event without copying its large arrays. The buffer refers to them and keeps the event.
grpc::ByteBuffer ToMessage(const std::shared_ptr<const v1::ExtractEvent>& event);

// Returns the message of Whole(piece) without copying arrays. The buffer refers to them and keeps the bundle.
grpc::ByteBuffer ToMessage(const BundlePiece& piece, const std::shared_ptr<const BundleSpectra>& bundle);

}  // namespace spexd

#endif  // SPEXD_SERVER_MESSAGES_EVENT_MESSAGES_H_
