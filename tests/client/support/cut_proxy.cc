#include "tests/client/support/cut_proxy.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <cstdint>
#include <stdexcept>
#include <utility>
#include <vector>

#include "tests/support/loopback.h"

namespace spexd::testing {

CutProxy::CutProxy(const std::string& address)
    : target_(address), listener_(ListenOnLoopback(&address_)), cut_(eventfd(0, EFD_CLOEXEC)) {
  thread_ = std::thread([this] { Forward(); });
}

CutProxy::~CutProxy() {
  if (thread_.joinable()) Cut();
}

void CutProxy::AwaitFromClient(int times) {
  MutexLock lock(&mutex_);
  for (const int end = from_client_ + times; from_client_ < end;) changed_.Wait(&mutex_);
}

void CutProxy::Cut() {
  const uint64_t one = 1;
  if (write(cut_.get(), &one, sizeof(one)) != sizeof(one)) throw std::runtime_error("eventfd");
  thread_.join();
}

void CutProxy::Accept() {
  FileDescriptor client = AcceptFrom(listener_), server = ConnectOnLoopback(target_);
  if (server.get() >= 0) links_.push_back({std::move(client), std::move(server)});
}

void CutProxy::Forward() {
  while (true) {
    std::vector<pollfd> waits = {{cut_.get(), POLLIN, 0}, {listener_.get(), POLLIN, 0}};
    for (const Link& link : links_) {
      waits.push_back({link.client.get(), POLLIN, 0});
      waits.push_back({link.server.get(), POLLIN, 0});
    }
    if (poll(waits.data(), waits.size(), -1) < 0) continue;
    if (waits[0].revents != 0) return;
    size_t k = 2;
    for (auto link = links_.begin(); link != links_.end(); k += 2) {
      if (waits[k].revents != 0) {
        MutexLock lock(&mutex_);
        ++from_client_;
        changed_.NotifyAll();
      }
      const bool open = (waits[k].revents == 0 || MoveBytes(link->client, link->server, SIZE_MAX)) &&
                        (waits[k + 1].revents == 0 || MoveBytes(link->server, link->client, SIZE_MAX));
      link = open ? std::next(link) : links_.erase(link);
    }
    if (waits[1].revents != 0) Accept();
  }
}

}  // namespace spexd::testing
