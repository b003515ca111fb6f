// What systemd is told of the server, by the protocol of sd_notify(3): datagrams to the socket that
// $NOTIFY_SOCKET names.
#ifndef SPEXD_SERVER_OPERATION_SERVICE_MANAGER_H_
#define SPEXD_SERVER_OPERATION_SERVICE_MANAGER_H_

#include <atomic>
#include <chrono>
#include <functional>
#include <optional>
#include <string>
#include <thread>

#include "core/base/threads/mutex.h"

namespace spexd {

// Safe to use from many threads.
class ServiceManager {
 public:
  // nullopt: nobody wants to be told. `environment`: getenv.
  static std::optional<ServiceManager> Find(const std::function<const char*(const char*)>& environment);

  // "READY=1", or several lines of this kind. A message that cannot be sent is lost.
  void Notify(const std::string& state) const;
  // The longest time between two WATCHDOG=1; nullopt: none are asked for.
  std::optional<std::chrono::microseconds> watchdog() const { return watchdog_; }

 private:
  explicit ServiceManager(std::string socket) : socket_(std::move(socket)) {}

  const std::string socket_;
  std::optional<std::chrono::microseconds> watchdog_;
};

// Tells the service manager, from a thread of its own, that the server became ready, how it is, and that it
// works: the watchdog is fed only while the server answers its own port.
class Heartbeat {
 public:
  struct Server {
    std::function<std::string()> why_not_alive;  // "": alive
    std::function<std::string()> why_not_ready;  // "": ready
    std::function<std::string()> status;         // a line for people
  };
  // `manager` is not owned.
  Heartbeat(const ServiceManager* manager, Server server);

  // Runs `reload` between the messages that such a thing begins and has ended.
  void AroundReload(const std::function<void()>& reload) const;

 private:
  void Run(const std::stop_token& stop);
  void Beat();

  const ServiceManager& manager_;
  const Server server_;
  const std::chrono::microseconds period_;  // once it is ready
  std::atomic<bool> ready_ = false;         // and the manager knows
  Mutex mutex_;
  CondVar stopped_;
  std::jthread thread_;
};

}  // namespace spexd

#endif  // SPEXD_SERVER_OPERATION_SERVICE_MANAGER_H_
