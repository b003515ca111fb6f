#include "tests/support/process.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/inotify.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <utility>

namespace spexd::testing {
namespace {

[[noreturn]] void Throw(const std::string& what) { throw std::runtime_error(what); }

}  // namespace

std::string BinFolder() {
  if (const char* folder = std::getenv("SPEXD_BIN")) return folder;
  return std::filesystem::read_symlink("/proc/self/exe").parent_path().string();
}

Process::Process(const std::vector<std::string>& command, const ProcessOptions& options) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) Throw("pipe2");
  std::vector<char*> argv;
  for (const std::string& argument : command) argv.push_back(const_cast<char*>(argument.c_str()));
  argv.push_back(nullptr);
  const pid_t parent = getpid();
  pid_ = fork();
  if (pid_ < 0) Throw("fork");
  if (pid_ == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent) _exit(126);
    dup2(open("/dev/null", O_RDONLY | O_CLOEXEC), STDIN_FILENO);
    dup2(ends[1], STDOUT_FILENO);
    dup2(ends[1], STDERR_FILENO);
    if (options.max_file_bytes >= 0) {
      const rlimit limit = {static_cast<rlim_t>(options.max_file_bytes),
                            static_cast<rlim_t>(options.max_file_bytes)};
      setrlimit(RLIMIT_FSIZE, &limit);
    }
    if (options.max_descriptors >= 0) {
      const rlimit limit = {static_cast<rlim_t>(options.max_descriptors),
                            static_cast<rlim_t>(options.max_descriptors)};
      setrlimit(RLIMIT_NOFILE, &limit);
    }
    if (!options.folder.empty() && chdir(options.folder.c_str()) != 0) _exit(126);
    for (const std::string& variable : options.environment) {
      putenv(const_cast<char*>(variable.c_str()));
    }
    execvp(argv[0], argv.data());
    _exit(127);
  }
  close(ends[1]);
  pipe_ = ends[0];
}

Process::~Process() {
  if (!waited_) {
    Signal(SIGKILL);
    Wait();
  }
}

bool Process::ReadSome() {
  char buffer[4096];
  ssize_t got;
  do {
    got = read(pipe_, buffer, sizeof(buffer));
  } while (got < 0 && errno == EINTR);
  if (got <= 0) return false;
  output_.append(buffer, static_cast<size_t>(got));
  return true;
}

bool Process::WaitForLine(const std::string& text, std::string* found) {
  while (true) {
    const size_t end = output_.find('\n', scanned_);
    if (end == std::string::npos) {
      if (!ReadSome()) return false;
      continue;
    }
    const std::string line = output_.substr(scanned_, end - scanned_);
    scanned_ = end + 1;
    if (line.find(text) == std::string::npos) continue;
    if (found != nullptr) *found = line;
    return true;
  }
}

void Process::Signal(int number) {
  if (!waited_) kill(pid_, number);
}

int Process::Wait() {
  if (waited_) return code_;
  while (ReadSome()) {
  }
  return WaitUnread();
}

int Process::WaitUnread() {
  if (waited_) return code_;
  int status = 0;
  while (waitpid(pid_, &status, 0) < 0 && errno == EINTR) {
  }
  waited_ = true;
  close(pipe_);
  code_ = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  return code_;
}

std::vector<std::string> Joined(std::vector<std::string> first, const std::vector<std::string>& second) {
  first.insert(first.end(), second.begin(), second.end());
  return first;
}

RunResult Spex(std::vector<std::string> arguments, const ProcessOptions& options) {
  arguments.insert(arguments.begin(), BinFolder() + "/spex");
  Process process(arguments, options);
  const int code = process.Wait();
  return {code, process.output()};
}

TestServer::TestServer(const std::vector<std::string>& arguments, const ProcessOptions& options) {
  const std::string port_file = folder_ / "ports.json", log = folder_ / "log";
  // The log goes to a file, because nobody reads while the server runs. The end of stdout shows that it died.
  std::vector<std::string> command = {"sh",
                                      "-c",
                                      "exec \"$0\" \"$@\" 2> '" + log + "'",
                                      BinFolder() + "/spexd",
                                      "--listen",
                                      "127.0.0.1:0",
                                      "--http",
                                      "127.0.0.1:0",
                                      "--port-file",
                                      port_file};
  command.insert(command.end(), arguments.begin(), arguments.end());

  const int watch = inotify_init1(IN_CLOEXEC);
  if (watch < 0 || inotify_add_watch(watch, folder_.path().c_str(), IN_MOVED_TO) < 0) Throw("inotify");
  process_ = std::make_unique<Process>(command, options);
  pollfd wait[2] = {{watch, POLLIN, 0}, {process_->output_pipe(), POLLIN, 0}};
  const int ready = poll(wait, 2, 120000);
  close(watch);
  if (ready < 1 || wait[0].revents == 0) Throw("spexd did not start: " + ReadBytes(log));
  const nlohmann::json ports = nlohmann::json::parse(ReadBytes(port_file));
  address_ = ports.at("grpc").get<std::string>();
  http_ = "127.0.0.1:" + std::to_string(ports.at("http_port").get<int>());
}

TestServer::~TestServer() {
  process_->Signal(SIGTERM);
  process_->Wait();
}

}  // namespace spexd::testing
