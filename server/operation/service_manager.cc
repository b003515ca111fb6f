#include "server/operation/service_manager.h"

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "core/base/file_descriptor.h"
#include "core/base/threads/deadline.h"

namespace spexd {
namespace {

// The time between two checks of the server, until it is ready and afterwards.
constexpr std::chrono::microseconds kUntilReady = std::chrono::seconds(1), kPeriod = std::chrono::seconds(10);

std::optional<std::chrono::microseconds> WatchdogOf(
    const std::function<const char*(const char*)>& environment) {
  const char* const time = environment("WATCHDOG_USEC");
  const char* const process = environment("WATCHDOG_PID");
  int64_t number = 0;
  if (process != nullptr && (!absl::SimpleAtoi(process, &number) || number != getpid())) return std::nullopt;
  if (time == nullptr || !absl::SimpleAtoi(time, &number) || number <= 0) return std::nullopt;
  return std::chrono::microseconds(number);
}

}  // namespace

std::optional<ServiceManager> ServiceManager::Find(
    const std::function<const char*(const char*)>& environment) {
  const char* const socket = environment("NOTIFY_SOCKET");
  if (socket == nullptr || (*socket != '/' && *socket != '@')) return std::nullopt;
  if (std::strlen(socket) >= sizeof(sockaddr_un::sun_path)) return std::nullopt;
  ServiceManager manager(socket);
  manager.watchdog_ = WatchdogOf(environment);
  return manager;
}

void ServiceManager::Notify(const std::string& state) const {
  const FileDescriptor socket(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  if (socket.get() < 0) return;
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  socket_.copy(address.sun_path, sizeof(address.sun_path) - 1);
  if (socket_[0] == '@') address.sun_path[0] = '\0';  // an abstract name
  const auto size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + socket_.size());
  sendto(socket.get(), state.data(), state.size(), MSG_NOSIGNAL | MSG_DONTWAIT,
         reinterpret_cast<const sockaddr*>(&address), size);
}

Heartbeat::Heartbeat(const ServiceManager* manager, Server server)
    : manager_(*manager),
      server_(std::move(server)),
      period_(std::min(kPeriod, manager->watchdog().value_or(kPeriod) / 3)),
      thread_([this](const std::stop_token& stop) { Run(stop); }) {}

void Heartbeat::AroundReload(const std::function<void()>& reload) const {
  const bool ready = ready_;
  if (ready) manager_.Notify("RELOADING=1");
  reload();
  if (ready) manager_.Notify("READY=1");
}

void Heartbeat::Run(const std::stop_token& stop) {
  const WakeOnStop wake(stop, &mutex_, &stopped_);
  auto next = std::chrono::steady_clock::now();
  while (!stop.stop_requested()) {
    Beat();
    next = std::max(next + (ready_ ? period_ : std::min(period_, kUntilReady)),
                    std::chrono::steady_clock::now());
    MutexLock lock(&mutex_);
    while (!stop.stop_requested() && stopped_.WaitUntil(&mutex_, next)) {
    }
  }
}

void Heartbeat::Beat() {
  const std::string not_alive = server_.why_not_alive();
  const std::string not_ready = not_alive.empty() ? server_.why_not_ready() : not_alive;
  std::string state;
  if (!ready_ && not_ready.empty()) {
    ready_ = true;
    state = "READY=1\n";
  }
  if (not_alive.empty() && manager_.watchdog().has_value()) state += "WATCHDOG=1\n";
  // The status must be a single line.
  const std::string status = not_ready.empty() ? server_.status() : not_ready;
  manager_.Notify(absl::StrCat(state, "STATUS=", absl::StrReplaceAll(status, {{"\n", " "}})));
}

}  // namespace spexd
