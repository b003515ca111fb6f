#include "server/messages/job_event.h"

#include <utility>

#include "server/messages/event_messages.h"

namespace spexd {
namespace {

v1::ExtractEvent ProgressOf(const StateEvent& state) {
  v1::ExtractEvent event;
  event.mutable_progress()->set_state(state.state);
  event.mutable_progress()->set_bundles_done(static_cast<uint32_t>(state.bundles_done));
  event.mutable_progress()->set_bundles_total(static_cast<uint32_t>(state.bundles_total));
  return event;
}

}  // namespace

std::vector<grpc::ByteBuffer> ToMessages(JobEvent event) {
  std::vector<grpc::ByteBuffer> messages;
  if (const auto* bundle = std::get_if<BundleEvent>(&event)) {
    for (const BundlePiece& piece : bundle->pieces) messages.push_back(ToMessage(piece, bundle->bundle));
    return messages;
  }
  for (v1::ExtractEvent& part : ToEvents(std::move(event)))
    messages.push_back(ToMessage(std::make_shared<const v1::ExtractEvent>(std::move(part))));
  return messages;
}

std::vector<v1::ExtractEvent> ToEvents(JobEvent event) {
  if (const auto* state = std::get_if<StateEvent>(&event)) return {ProgressOf(*state)};
  if (auto* info = std::get_if<FrameInfoEvent>(&event)) return std::move(info->parts);
  if (auto* product = std::get_if<ProductEvent>(&event)) return std::move(product->parts);
  std::vector<v1::ExtractEvent> events;
  for (const BundlePiece& piece : std::get<BundleEvent>(event).pieces) events.push_back(Whole(piece));
  return events;
}

}  // namespace spexd
