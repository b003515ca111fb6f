// The handling of Ctrl-C and SIGTERM, which request a stop instead of ending the process.
#ifndef SPEXD_CLIENT_CLI_TERMINAL_INTERRUPT_H_
#define SPEXD_CLIENT_CLI_TERMINAL_INTERRUPT_H_

#include <csignal>
#include <stop_token>
#include <thread>

namespace spexd::cli {

// Lets SIGINT and SIGTERM request a stop of `stop` while it lives. Construct it before the program starts
// other threads, which inherit the signal mask.
class InterruptGuard {
 public:
  explicit InterruptGuard(std::stop_source stop);
  ~InterruptGuard();
  InterruptGuard(const InterruptGuard&) = delete;
  InterruptGuard& operator=(const InterruptGuard&) = delete;

 private:
  void Watch(std::stop_source stop) const;

  sigset_t previous_mask_;
  struct sigaction previous_int_, previous_term_;
  int signals_ = -1;  // signalfd
  int gone_ = -1;     // eventfd
  std::thread thread_;
};

}  // namespace spexd::cli

#endif  // SPEXD_CLIENT_CLI_TERMINAL_INTERRUPT_H_
