#include "server/connection_timer.h"

#include <sys/socket.h>

#include <algorithm>

namespace spexd {

ConnectionTimer::ConnectionTimer(std::chrono::milliseconds most)
    : most_(most), thread_([this] { Watch(); }) {}

ConnectionTimer::~ConnectionTimer() {
  {
    MutexLock lock(&mutex_);
    stopping_ = true;
  }
  changed_.NotifyAll();
  thread_.join();
}

void ConnectionTimer::Opened(int socket) {
  {
    MutexLock lock(&mutex_);
    connections_.push_back({socket, std::chrono::steady_clock::now() + most_});
  }
  changed_.NotifyAll();
}

void ConnectionTimer::Closed(int socket) {
  MutexLock lock(&mutex_);
  connections_.remove_if([socket](const Connection& one) { return one.socket == socket; });
}

void ConnectionTimer::Watch() {
  MutexLock lock(&mutex_);
  while (!stopping_) {
    if (connections_.empty()) {
      changed_.Wait(&mutex_);
      continue;
    }
    const Connection oldest = connections_.front();
    if (std::chrono::steady_clock::now() < oldest.end) {
      changed_.WaitUntil(&mutex_, oldest.end);
      continue;
    }
    // Its owner finds it ended and closes it.
    shutdown(oldest.socket, SHUT_RDWR);
    connections_.pop_front();
  }
}

}  // namespace spexd
