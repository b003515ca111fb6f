#include "client/cli/commands/python_script.h"

#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "absl/strings/str_cat.h"
#include "core/base/file_descriptor.h"
#include "core/base/install_paths.h"
#include "core/base/status_macros.h"

namespace spexd::cli {
namespace {

// Returns the path of a script: beside the program in a build, in share/spexd in an installation.
absl::StatusOr<std::string> FindScript(const std::string& name) {
  std::error_code error;
  const std::filesystem::path program = std::filesystem::read_symlink("/proc/self/exe", error);
  const std::filesystem::path folder = program.parent_path();
  const std::filesystem::path candidates[] = {folder / name,
                                              (folder / kDataFromPrograms / name).lexically_normal()};
  for (const std::filesystem::path& script : candidates) {
    if (std::filesystem::exists(script, error)) return script.string();
  }
  return absl::InternalError(absl::StrCat(name, " is neither in ", folder.string(), " nor in ",
                                          candidates[1].parent_path().string(),
                                          ": the installation is incomplete"));
}

// Runs a program and returns its exit code. `output`: the descriptor for its stdout and stderr; negative:
// those of spex.
absl::StatusOr<int> RunProgram(const std::vector<std::string>& arguments, int output) {
  std::vector<char*> argv;
  for (const std::string& argument : arguments) argv.push_back(const_cast<char*>(argument.c_str()));
  argv.push_back(nullptr);
  const pid_t child = fork();
  if (child < 0) return absl::InternalError(absl::StrCat("fork: ", std::strerror(errno)));
  if (child == 0) {
    if (output >= 0 && (dup2(output, STDOUT_FILENO) < 0 || dup2(output, STDERR_FILENO) < 0)) _exit(127);
    execvp(argv[0], argv.data());
    _exit(127);
  }
  int status = 0;
  while (waitpid(child, &status, 0) < 0) {
    if (errno != EINTR) return absl::InternalError(absl::StrCat("waitpid: ", std::strerror(errno)));
  }
  if (!WIFEXITED(status)) return absl::InternalError(absl::StrCat(arguments[0], " was ended by a signal"));
  return WEXITSTATUS(status);
}

absl::StatusOr<FileDescriptor> FileInMemory() {
  FileDescriptor file(memfd_create("spex-script", 0));
  if (file.get() < 0) return absl::InternalError(absl::StrCat("memfd_create: ", std::strerror(errno)));
  return file;
}

absl::StatusOr<int> RunScript(const std::string& command, const std::string& script,
                              const std::vector<std::string>& arguments, int output) {
  SPEXD_ASSIGN_OR_RETURN(const std::string path, FindScript(script));
  const char* chosen = std::getenv("SPEXD_PYTHON");
  std::vector<std::string> all = {chosen != nullptr ? chosen : "python3", path};
  all.insert(all.end(), arguments.begin(), arguments.end());
  SPEXD_ASSIGN_OR_RETURN(const int code, RunProgram(all, output));
  if (code == 127) {
    return absl::FailedPreconditionError(
        absl::StrCat(command, " needs Python: ", all[0], " was not found (Debian: apt-get install python3)"));
  }
  return code;
}

}  // namespace

absl::StatusOr<int> RunPythonScript(const std::string& command, const std::string& script,
                                    const std::vector<std::string>& arguments) {
  return RunScript(command, script, arguments, /*output=*/-1);
}

absl::StatusOr<PythonOutput> ReadPythonScript(const std::string& command, const std::string& script,
                                              const std::vector<std::string>& arguments) {
  SPEXD_ASSIGN_OR_RETURN(const FileDescriptor file, FileInMemory());
  PythonOutput output;
  SPEXD_ASSIGN_OR_RETURN(output.code, RunScript(command, script, arguments, file.get()));
  std::ifstream text(absl::StrCat("/proc/self/fd/", file.get()));
  output.text.assign(std::istreambuf_iterator<char>(text), {});
  return output;
}

absl::StatusOr<int> DrawJson(const std::string& command, const std::string& script, const std::string& json,
                             const std::string& output) {
  SPEXD_ASSIGN_OR_RETURN(const FileDescriptor file, FileInMemory());
  for (size_t done = 0; done < json.size();) {
    const ssize_t count = write(file.get(), json.data() + done, json.size() - done);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return absl::InternalError(absl::StrCat("writing to memory: ", std::strerror(errno)));
    done += static_cast<size_t>(count);
  }
  return RunPythonScript(command, script, {absl::StrCat("/proc/self/fd/", file.get()), output});
}

}  // namespace spexd::cli
