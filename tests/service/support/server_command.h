// Command lines of servers for tests.
#ifndef SPEXD_TESTS_SERVICE_SUPPORT_SERVER_COMMAND_H_
#define SPEXD_TESTS_SERVICE_SUPPORT_SERVER_COMMAND_H_

#include <string>
#include <vector>

#include "tests/support/process.h"
#include "tests/support/temp_folder.h"

namespace spexd::testing {

// Returns the command for spexd with the CPU engine on one thread. It reads `folder` and writes its ports to
// ports.json there. Further flags follow.
inline std::vector<std::string> ServerCommand(const TempFolder& folder,
                                              const std::vector<std::string>& flags) {
  return Joined({BinFolder() + "/spexd", "--port-file", folder / "ports.json", "--allow-root", folder.path(),
                 "--device", "cpu", "--threads", "1"},
                flags);
}
// Returns the same command with detached jobs in folder/jobs, one at a time, and without an HTTP port.
inline std::vector<std::string> DetachedServerCommand(const TempFolder& folder,
                                                      const std::vector<std::string>& flags = {}) {
  return Joined(ServerCommand(folder, {"--listen", "127.0.0.1:0", "--http", "none", "--max-running-jobs", "1",
                                       "--jobs-dir", folder / "jobs"}),
                flags);
}

}  // namespace spexd::testing

#endif  // SPEXD_TESTS_SERVICE_SUPPORT_SERVER_COMMAND_H_
