// Ctrl-C and SIGTERM become a cancelled token instead of a dead process.
#ifndef SPEXD_CLIENT_CLI_INTERRUPT_H_
#define SPEXD_CLIENT_CLI_INTERRUPT_H_

#include <csignal>
#include <thread>

#include "client/cancel_token.h"

namespace spexd::cli {

// While it lives, SIGINT and SIGTERM cancel `token`. Make it before any other thread: they inherit the signal
// mask.
class InterruptGuard {
 public:
  explicit InterruptGuard(client::CancelToken* token);
  ~InterruptGuard();
  InterruptGuard(const InterruptGuard&) = delete;
  InterruptGuard& operator=(const InterruptGuard&) = delete;

 private:
  void Watch(client::CancelToken* token) const;

  sigset_t previous_mask_;
  int signals_ = -1;  // signalfd
  int stop_ = -1;     // eventfd
  std::thread thread_;
};

}  // namespace spexd::cli

#endif  // SPEXD_CLIENT_CLI_INTERRUPT_H_
