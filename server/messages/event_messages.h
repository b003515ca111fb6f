// Extract's events as gRPC sends them.
#ifndef SPEXD_SERVER_MESSAGES_EVENT_MESSAGES_H_
#define SPEXD_SERVER_MESSAGES_EVENT_MESSAGES_H_

#include <memory>

#include "core/frame/bundle_spectra.h"
#include "grpcpp/support/byte_buffer.h"
#include "server/messages/convert.h"
#include "spexd/v1/extraction.pb.h"

namespace spexd {

grpc::ByteBuffer ToMessage(const v1::ExtractEvent& event);

// The same, for events of large arrays. It refers to them, and keeps the event: they are not copied on their
// way to the socket.
grpc::ByteBuffer ToMessage(const std::shared_ptr<const v1::ExtractEvent>& event);

// The message of Whole(piece). It refers to the bundle's arrays, which live as long as it does: nothing is
// copied on its way to the socket.
grpc::ByteBuffer ToMessage(const BundlePiece& piece, const std::shared_ptr<const BundleSpectra>& bundle);

}  // namespace spexd

#endif  // SPEXD_SERVER_MESSAGES_EVENT_MESSAGES_H_
