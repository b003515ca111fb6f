// Child processes and a spexd server for tests that use the programs as a user does.
#ifndef SPEXD_TESTS_SUPPORT_PROCESS_H_
#define SPEXD_TESTS_SUPPORT_PROCESS_H_

#include <sys/types.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "tests/support/temp_folder.h"

namespace spexd::testing {

// The folder of the binaries: $SPEXD_BIN, else the one that holds this test.
std::string BinFolder();

// The words of one command line, then those of the other.
std::vector<std::string> Joined(std::vector<std::string> first, const std::vector<std::string>& second);

struct ProcessOptions {
  std::string folder = {};                    // folder to start in; "": the current one
  int64_t max_file_bytes = -1;                // RLIMIT_FSIZE: what a full disk looks like
  int max_descriptors = -1;                   // RLIMIT_NOFILE
  std::vector<std::string> environment = {};  // NAME=value, added to this process's
};

// A child process; killed when this test dies. stdout and stderr come through one pipe.
class Process {
 public:
  explicit Process(const std::vector<std::string>& command, const ProcessOptions& options = {});
  ~Process();  // kills it if it still runs
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;

  // Waits for a line that contains `text`; false if the output ended without one. `line`: the whole of it.
  bool WaitForLine(const std::string& text, std::string* line = nullptr);
  void Signal(int number);
  pid_t id() const { return pid_; }
  // Reads all output and waits; the exit code, or 128 + the signal that ended it.
  int Wait();
  // Waits without reading any output.
  int WaitUnread();
  const std::string& output() const { return output_; }
  int output_pipe() const { return pipe_; }
  pid_t pid() const { return pid_; }

 private:
  bool ReadSome();

  pid_t pid_ = -1;
  int pipe_ = -1;
  int code_ = -1;
  bool waited_ = false;
  size_t scanned_ = 0;
  std::string output_;
};

struct RunResult {
  int code = -1;
  std::string output;
};
// Runs spex to its end.
RunResult Spex(std::vector<std::string> arguments, const ProcessOptions& options = {});

// spexd on ports chosen by the kernel; answers when the constructor returns. Ended by SIGTERM.
class TestServer {
 public:
  explicit TestServer(const std::vector<std::string>& arguments, const ProcessOptions& options = {});
  ~TestServer();

  const std::string& address() const { return address_; }
  const std::string& http() const { return http_; }
  Process& process() { return *process_; }
  std::string log() const { return folder_ / "log"; }

 private:
  TempFolder folder_;
  std::unique_ptr<Process> process_;
  std::string address_, http_;
};

}  // namespace spexd::testing

#endif  // SPEXD_TESTS_SUPPORT_PROCESS_H_
