#include "tests/service/support/slow_link.h"

#include <poll.h>
#include <sys/eventfd.h>

#include <array>
#include <chrono>
#include <cstdint>

#include "tests/support/loopback.h"

namespace spexd::testing {
namespace {

constexpr int kPiecesASecond = 10;
constexpr int kSocketBytes = 4096;  // bytes that a socket on this side holds; the rest waits in the server

}  // namespace

SlowLink::SlowLink(const std::string& address, int bytes_per_second)
    : bytes_per_second_(bytes_per_second),
      target_(address),
      listener_(ListenOnLoopback(&address_)),
      end_(eventfd(0, EFD_CLOEXEC)) {
  thread_ = std::thread([this] { Forward(); });
}

SlowLink::~SlowLink() {
  eventfd_write(end_.get(), 1);
  thread_.join();
}

void SlowLink::Forward() {
  std::array<pollfd, 2> arrival = {pollfd{end_.get(), POLLIN, 0}, {listener_.get(), POLLIN, 0}};
  while (poll(arrival.data(), arrival.size(), -1) < 0) continue;
  if (arrival[0].revents != 0) return;
  const FileDescriptor client = AcceptFrom(listener_);
  const FileDescriptor server = ConnectOnLoopback(target_, {"127.0.0.2", kSocketBytes});
  using Clock = std::chrono::steady_clock;
  constexpr std::chrono::milliseconds kPause(1000 / kPiecesASecond);
  Clock::time_point next = Clock::now();
  for (;;) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(next - Clock::now());
    const bool due = left.count() <= 0;
    // poll ignores negative descriptors.
    std::array<pollfd, 3> waits = {
        pollfd{end_.get(), POLLIN, 0}, {client.get(), POLLIN, 0}, {due ? server.get() : -1, POLLIN, 0}};
    if (poll(waits.data(), waits.size(), due ? -1 : static_cast<int>(left.count())) < 0) continue;
    if (waits[0].revents != 0) return;
    if (waits[1].revents != 0 && !MoveBytes(client, server, SIZE_MAX)) return;
    if (waits[2].revents == 0) continue;
    if (!MoveBytes(server, client, static_cast<size_t>(bytes_per_second_ / kPiecesASecond))) return;
    next = Clock::now() + kPause;
  }
}

}  // namespace spexd::testing
