#include "client/cli/interrupt.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <cstdint>
#include <utility>

namespace spexd::cli {

InterruptGuard::InterruptGuard(std::stop_source stop) {
  sigset_t mask;
  sigemptyset(&mask);
  sigaddset(&mask, SIGINT);
  sigaddset(&mask, SIGTERM);
  pthread_sigmask(SIG_BLOCK, &mask, &previous_mask_);
  signals_ = signalfd(-1, &mask, SFD_CLOEXEC);
  gone_ = eventfd(0, EFD_CLOEXEC);
  thread_ = std::thread([this, stop = std::move(stop)] { Watch(stop); });
}

InterruptGuard::~InterruptGuard() {
  const uint64_t one = 1;
  [[maybe_unused]] const ssize_t written = write(gone_, &one, sizeof(one));
  thread_.join();
  close(signals_);
  close(gone_);
  pthread_sigmask(SIG_SETMASK, &previous_mask_, nullptr);
}

void InterruptGuard::Watch(std::stop_source stop) const {
  pollfd wait[2] = {{signals_, POLLIN, 0}, {gone_, POLLIN, 0}};
  while (true) {
    if (poll(wait, 2, -1) < 0) continue;
    if (wait[1].revents != 0) return;
    signalfd_siginfo info;
    if (wait[0].revents != 0 && read(signals_, &info, sizeof(info)) == sizeof(info)) stop.request_stop();
  }
}

}  // namespace spexd::cli
