#include "client/balance/server_rotation.h"

#include <algorithm>

namespace spexd::client {

ServerRotation::ServerRotation(int servers, const RetryPolicy& policy, std::optional<uint32_t> first)
    : policy_(policy),
      patience_(policy.queue_patience),
      random_(MakeRandom(policy)),
      servers_(static_cast<size_t>(servers)),
      first_(first.has_value() ? static_cast<int>(*first % static_cast<uint32_t>(servers))
                               : std::uniform_int_distribution<int>(0, servers - 1)(random_)) {}

void ServerRotation::Add(int count) {
  first_ = static_cast<int>(servers_.size()) + std::uniform_int_distribution<int>(0, count - 1)(random_);
  servers_.resize(servers_.size() + static_cast<size_t>(count));
}

std::vector<int> ServerRotation::Ready(Time now) const {
  std::vector<int> ready;
  for (size_t k = 0; k < servers_.size(); ++k) {
    if (!servers_[k].out && servers_[k].ready <= now) ready.push_back(static_cast<int>(k));
  }
  return ready;
}

std::optional<ServerRotation::Candidate> ServerRotation::Next(Time now) {
  const int count = static_cast<int>(servers_.size());
  for (int k = 0; k < count; ++k) {
    const int server = (first_ + k) % count;
    if (servers_[server].out || servers_[server].ready > now) continue;
    first_ = (server + 1) % count;
    return Candidate{server, milliseconds(0)};
  }
  while (true) {
    int next = -1;
    for (int k = 0; k < count; ++k) {
      if (!servers_[k].out && (next < 0 || servers_[k].ready < servers_[next].ready)) next = k;
    }
    if (next < 0) return std::nullopt;
    const milliseconds wait = std::chrono::ceil<milliseconds>(servers_[next].ready - now);
    if (servers_[next].full && wait > patience_) {
      servers_[next].out = true;
      continue;
    }
    if (servers_[next].full) patience_ -= wait;
    first_ = (next + 1) % count;
    return Candidate{next, wait};
  }
}

void ServerRotation::NoteFull(int server, milliseconds delay, Time now) {
  servers_[server].full = true;
  servers_[server].ready = now + Spread(std::max(delay, milliseconds(1)), &random_);
}

void ServerRotation::NoteGone(int server, std::optional<milliseconds> delay, Time now) {
  Server& gone = servers_[server];
  gone.full = false;
  if (++gone.gone >= policy_.unavailable_attempts) gone.out = true;
  gone.ready = now + BackOff(policy_, gone.gone, delay, &random_);
}

void ServerRotation::StayWith(int server) {
  for (Server& other : servers_) other.out = other.out || &other != &servers_[server];
}

}  // namespace spexd::client
