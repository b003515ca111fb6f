// Runs other programs from tests.
#ifndef SPEXD_TESTS_SUPPORT_RUN_COMMAND_H_
#define SPEXD_TESTS_SUPPORT_RUN_COMMAND_H_

#include <string>
#include <vector>

namespace spexd::testing {

struct CommandResult {
  int exit_code = -1;  // 127: no such program; 128 + the signal that ended it
  std::string output;  // stdout and stderr
};

// Runs a program (found on PATH) without stdin and waits for its end.
CommandResult RunCommand(const std::vector<std::string>& arguments);

// Runs the Python that has numpy, astropy and fitsio.
CommandResult RunPython(std::vector<std::string> arguments);

}  // namespace spexd::testing

#endif  // SPEXD_TESTS_SUPPORT_RUN_COMMAND_H_
