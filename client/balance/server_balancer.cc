#include "client/balance/server_balancer.h"

#include <algorithm>
#include <utility>

namespace spexd::client {

using std::chrono::steady_clock;

ServerBalancer::Assignment::Assignment(ServerBalancer* balancer, const Servers& servers,
                                       const std::vector<int>& ready, const Connection::Deadline& deadline,
                                       const std::stop_token& stop)
    : balancer_(balancer) {
  const std::vector<ServerSpeeds::Server> all(servers.begin(), servers.end());
  steady_clock::time_point end = steady_clock::time_point::max();
  if (deadline.has_value()) end = steady_clock::now() + (*deadline - Clock::now());
  const std::stop_callback wake(stop, [balancer] {
    const MutexLock lock(&balancer->mutex_);
    balancer->changed_.NotifyAll();
  });
  const MutexLock lock(&balancer->mutex_);
  ServerSpeeds::Choice choice = balancer->speeds_.Choose(all, ready, steady_clock::now());
  while (!choice.server.has_value() && !stop.stop_requested() && steady_clock::now() < end) {
    balancer->changed_.WaitUntil(&balancer->mutex_, std::min(choice.again, end));
    choice = balancer->speeds_.Choose(all, ready, steady_clock::now());
  }
  index_ = choice.server.value_or(ready.front());
  server_ = all[static_cast<size_t>(index_)];
  balancer->speeds_.Begin(server_, steady_clock::now());
}

void ServerBalancer::Assignment::End(Outcome outcome, std::optional<std::chrono::milliseconds> delay) {
  ServerBalancer* const balancer = std::exchange(balancer_, nullptr);
  if (balancer == nullptr) return;
  const MutexLock lock(&balancer->mutex_);
  balancer->speeds_.End(server_, outcome, delay, steady_clock::now());
  balancer->changed_.NotifyAll();
}

}  // namespace spexd::client
