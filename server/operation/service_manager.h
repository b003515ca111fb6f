// Messages to systemd about the server, by the protocol of sd_notify(3): datagrams to the socket that
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
  // Returns the service manager; nullopt: there is none that wants messages. `environment`: getenv, for
  // tests.
  static std::optional<ServiceManager> Find(const std::function<const char*(const char*)>& environment);

  // Sends a message: "READY=1", or several lines of this kind. A message that cannot be sent is lost.
  void Notify(const std::string& state) const;
  // Returns the longest allowed time between two WATCHDOG=1; nullopt: none are expected.
  std::optional<std::chrono::microseconds> watchdog() const { return watchdog_; }

 private:
  explicit ServiceManager(std::string socket) : socket_(std::move(socket)) {}

  const std::string socket_;
  std::optional<std::chrono::microseconds> watchdog_;
};

// A thread that tells the service manager when the server becomes ready, its status, and that it is alive.
class Heartbeat {
 public:
  struct Server {
    std::function<std::string()> why_not_alive;  // "": alive
    std::function<std::string()> why_not_ready;  // "": ready
    std::function<std::string()> status;         // a line of text for people
  };
  // `manager` is not owned.
  Heartbeat(const ServiceManager* manager, Server server);

  // Runs `reload` between the messages that a reload begins and has ended.
  void AroundReload(const std::function<void()>& reload) const;

 private:
  void Run(const std::stop_token& stop);
  void Beat();

  const ServiceManager& manager_;
  const Server server_;
  const std::chrono::microseconds period_;  // time between two messages when the server is ready
  std::atomic<bool> ready_ = false;         // the manager was told that the server is ready
  Mutex mutex_;
  CondVar stopped_;
  std::jthread thread_;
};

}  // namespace spexd

#endif  // SPEXD_SERVER_OPERATION_SERVICE_MANAGER_H_
