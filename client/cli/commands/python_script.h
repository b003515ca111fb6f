// The Python scripts that draw pictures and pages for spex.
#ifndef SPEXD_CLIENT_CLI_COMMANDS_PYTHON_SCRIPT_H_
#define SPEXD_CLIENT_CLI_COMMANDS_PYTHON_SCRIPT_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace spexd::cli {

// Runs `script` with python3, or $SPEXD_PYTHON, and returns its exit code. The script is beside the program
// in a build and in share/spexd in an installation. `command`: the command's name in messages.
absl::StatusOr<int> RunPythonScript(const std::string& command, const std::string& script,
                                    const std::vector<std::string>& arguments);

struct PythonOutput {
  int code = 0;
  std::string text;  // stdout and stderr of the script
};
// Runs a script and returns its output instead of showing it.
absl::StatusOr<PythonOutput> ReadPythonScript(const std::string& command, const std::string& script,
                                              const std::vector<std::string>& arguments);

// Runs a script whose arguments are a JSON file and a picture or page to write. The JSON is passed as a file
// in memory, so that no file remains.
absl::StatusOr<int> DrawJson(const std::string& command, const std::string& script, const std::string& json,
                             const std::string& output);

}  // namespace spexd::cli

#endif  // SPEXD_CLIENT_CLI_COMMANDS_PYTHON_SCRIPT_H_
