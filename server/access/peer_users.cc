#include "server/access/peer_users.h"

#include <grpcpp/security/auth_metadata_processor.h>
#include <grpcpp/security/server_credentials.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace spexd {
namespace {

// Adds the user of a connection to the AuthContext of its calls.
class UidProcessor final : public grpc::AuthMetadataProcessor {
 public:
  explicit UidProcessor(std::shared_ptr<const std::atomic<int64_t>> uid) : uid_(std::move(uid)) {}
  bool IsBlocking() const override { return false; }
  grpc::Status Process(const InputMetadata&, grpc::AuthContext* context, OutputMetadata*,
                       OutputMetadata*) override {
    context->AddProperty(kPeerUidProperty, absl::StrCat(uid_->load()));
    return grpc::Status::OK;
  }

 private:
  const std::shared_ptr<const std::atomic<int64_t>> uid_;
};

}  // namespace

void PeerUsers::AddTo(grpc::ServerBuilder* builder) {
  for (Slot& slot : slots_) {
    slot.uid = std::make_shared<std::atomic<int64_t>>(-1);
    const auto credentials = grpc::experimental::LocalServerCredentials(UDS);
    credentials->SetAuthMetadataProcessor(std::make_shared<UidProcessor>(slot.uid));
    slot.acceptor = builder->experimental().AddExternalConnectionAcceptor(
        grpc::ServerBuilder::experimental_type::ExternalConnectionType::FROM_FD, credentials);
  }
}

absl::Status PeerUsers::Take(FileDescriptor connection) {
  ucred peer = {};
  socklen_t size = sizeof(peer);
  if (getsockopt(connection.get(), SOL_SOCKET, SO_PEERCRED, &peer, &size) != 0)
    return absl::UnavailableError(std::strerror(errno));
  const Slot* const slot = SlotOf(peer.uid);
  if (slot == nullptr) {
    return absl::ResourceExhaustedError(
        absl::StrFormat("user %d is one of more than %d", peer.uid, kMaxUsers));
  }
  grpc::experimental::ExternalConnectionAcceptor::NewConnectionParameters given;
  given.fd = connection.Release();
  slot->acceptor->HandleNewConnection(&given);
  return absl::OkStatus();
}

PeerUsers::Slot* PeerUsers::SlotOf(int64_t uid) {
  for (Slot& slot : slots_) {
    if (slot.uid->load() == uid) return &slot;
    if (slot.uid->load() >= 0) continue;
    slot.uid->store(uid);
    return &slot;
  }
  return nullptr;
}

}  // namespace spexd
