#include "tests/support/run_command.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>

namespace spexd::testing {

CommandResult RunCommand(const std::vector<std::string>& arguments) {
  std::vector<char*> argv;
  for (const std::string& argument : arguments) argv.push_back(const_cast<char*>(argument.c_str()));
  argv.push_back(nullptr);
  CommandResult result;
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return result;
  const pid_t child = fork();
  if (child == 0) {
    const int nothing = open("/dev/null", O_RDONLY);
    dup2(nothing, 0);
    dup2(ends[1], 1);
    dup2(ends[1], 2);
    execvp(argv[0], argv.data());
    _exit(127);
  }
  close(ends[1]);
  if (child > 0) {
    char buffer[4096];
    ssize_t got;
    while ((got = read(ends[0], buffer, sizeof(buffer))) > 0 || (got < 0 && errno == EINTR)) {
      if (got > 0) result.output.append(buffer, static_cast<size_t>(got));
    }
    int status = 0;
    while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
    }
    result.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  }
  close(ends[0]);
  return result;
}

CommandResult RunPython(std::vector<std::string> arguments) {
  // The distribution's Python, for which the packages are installed. Another one may come first on PATH.
  arguments.insert(arguments.begin(), "/usr/bin/python3");
  return RunCommand(arguments);
}

}  // namespace spexd::testing
