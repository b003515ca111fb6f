// Prints to stderr which measurements ran, and how long each took.
#ifndef SPEXD_CLIENT_CLI_TERMINAL_ANNOUNCER_H_
#define SPEXD_CLIENT_CLI_TERMINAL_ANNOUNCER_H_

#include <chrono>
#include <cstdio>
#include <string>

namespace spexd::cli {

class Announcer {
 public:
  explicit Announcer(bool quiet) : quiet_(quiet) {}
  ~Announcer() { End(); }
  Announcer(const Announcer&) = delete;
  Announcer& operator=(const Announcer&) = delete;

  void Begin(const std::string& what) {
    End();
    what_ = what;
    start_ = std::chrono::steady_clock::now();
  }
  void End() {
    if (what_.empty() || quiet_) return;
    const std::chrono::duration<double> passed = std::chrono::steady_clock::now() - start_;
    std::fprintf(stderr, "%s: %.1f s\n", what_.c_str(), passed.count());
    what_.clear();
  }

 private:
  const bool quiet_;
  std::string what_;
  std::chrono::steady_clock::time_point start_;
};

}  // namespace spexd::cli

#endif  // SPEXD_CLIENT_CLI_TERMINAL_ANNOUNCER_H_
