// Child processes and a spexd server, for tests that use the programs as a user does.
#ifndef SPEXD_TESTS_SUPPORT_PROCESS_H_
#define SPEXD_TESTS_SUPPORT_PROCESS_H_

#include <sys/types.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "tests/support/temp_folder.h"

namespace spexd::testing {

// Returns the folder of the programs: $SPEXD_BIN, else the folder of this test.
std::string BinFolder();

// Concatenates the words of two command lines.
std::vector<std::string> Joined(std::vector<std::string> first, const std::vector<std::string>& second);

struct ProcessOptions {
  std::string folder = {};                    // working folder; "": the current one
  int64_t max_file_bytes = -1;                // RLIMIT_FSIZE, which simulates a full disk
  int max_descriptors = -1;                   // RLIMIT_NOFILE
  std::vector<std::string> environment = {};  // NAME=value, added to this process's own
};

// A child process. It is killed when this test dies. stdout and stderr share one pipe.
class Process {
 public:
  explicit Process(const std::vector<std::string>& command, const ProcessOptions& options = {});
  ~Process();  // kills the process if it still runs
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;

  // Waits for a line that contains `text`; false if the output ends without one. `line`: gets the whole line.
  bool WaitForLine(const std::string& text, std::string* line = nullptr);
  void Signal(int number);
  pid_t id() const { return pid_; }
  // Reads all output, waits, and returns the exit code, or 128 + the signal that ended the process.
  int Wait();
  // Waits without reading any output. Returns the same as Wait.
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
// Runs spex and waits for its end.
RunResult Spex(std::vector<std::string> arguments, const ProcessOptions& options = {});

// A spexd on ports that the kernel chooses. It answers when the constructor returns, and is ended by SIGTERM.
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
