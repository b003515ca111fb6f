// The Python scripts that draw for spex, pictures and pages.
#ifndef SPEXD_CLIENT_CLI_COMMANDS_PYTHON_SCRIPT_H_
#define SPEXD_CLIENT_CLI_COMMANDS_PYTHON_SCRIPT_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace spexd::cli {

// Runs `script` (found beside the program in a build, in share/spexd of an installation) with python3, or
// $SPEXD_PYTHON, and returns its exit code. `command` is what asks for it, as messages name it.
absl::StatusOr<int> RunPythonScript(const std::string& command, const std::string& script,
                                    const std::vector<std::string>& arguments);

struct PythonOutput {
  int code = 0;
  std::string text;  // what the script printed, on stdout and stderr
};
// The same for a script whose output is read instead of shown.
absl::StatusOr<PythonOutput> ReadPythonScript(const std::string& command, const std::string& script,
                                              const std::vector<std::string>& arguments);

// The same for a script whose arguments are a JSON file and a picture or page to write. The JSON reaches it
// as a file in memory, so that nothing is left behind.
absl::StatusOr<int> DrawJson(const std::string& command, const std::string& script, const std::string& json,
                             const std::string& output);

}  // namespace spexd::cli

#endif  // SPEXD_CLIENT_CLI_COMMANDS_PYTHON_SCRIPT_H_
