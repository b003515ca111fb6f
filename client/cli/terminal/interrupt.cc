#include "client/cli/terminal/interrupt.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <ucontext.h>
#include <unistd.h>

#include <cstdint>
#include <utility>

namespace spexd::cli {
namespace {

// The signal handler, which runs only on threads that libraries started before the guard and that do not
// block the signal (OpenBLAS starts some before main). It blocks the signal on its thread and sends it again,
// to the signalfd.
void PassOn(int signal, siginfo_t* info, void* context) {
  sigaddset(&static_cast<ucontext_t*>(context)->uc_sigmask, signal);
  kill(getpid(), signal);
}

}  // namespace

InterruptGuard::InterruptGuard(std::stop_source stop) {
  sigset_t mask;
  sigemptyset(&mask);
  sigaddset(&mask, SIGINT);
  sigaddset(&mask, SIGTERM);
  pthread_sigmask(SIG_BLOCK, &mask, &previous_mask_);
  struct sigaction pass_on = {};
  pass_on.sa_sigaction = PassOn;
  pass_on.sa_flags = SA_SIGINFO | SA_RESTART;
  sigaction(SIGINT, &pass_on, &previous_int_);
  sigaction(SIGTERM, &pass_on, &previous_term_);
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
  sigaction(SIGINT, &previous_int_, nullptr);
  sigaction(SIGTERM, &previous_term_, nullptr);
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
