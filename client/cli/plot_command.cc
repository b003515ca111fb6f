#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "client/cli/commands.h"
#include "client/cli/exit_code.h"
#include "core/base/status_macros.h"
#include "core/fits/readers.h"
#include "core/fits/writers.h"

namespace spexd::cli {
namespace {

struct Options {
  std::string frame, output, image, model, fibres;
};

// Beside the binary in a build, in share/spexd of an installation.
absl::StatusOr<std::string> FindScript() {
  std::error_code error;
  const std::filesystem::path program = std::filesystem::read_symlink("/proc/self/exe", error);
  const std::filesystem::path folder = program.parent_path();
  const std::filesystem::path candidates[] = {folder / "plot_frame.py",
                                              folder.parent_path() / "share/spexd/plot_frame.py"};
  for (const std::filesystem::path& script : candidates) {
    if (std::filesystem::exists(script, error)) return script.string();
  }
  return absl::InternalError(absl::StrCat("plot_frame.py is neither in ", folder.string(), " nor in ",
                                          candidates[1].parent_path().string(),
                                          ": the installation is incomplete"));
}

absl::StatusOr<int> RunProgram(const std::vector<std::string>& arguments) {
  std::vector<char*> argv;
  for (const std::string& argument : arguments) argv.push_back(const_cast<char*>(argument.c_str()));
  argv.push_back(nullptr);
  const pid_t child = fork();
  if (child < 0) return absl::InternalError(absl::StrCat("fork: ", std::strerror(errno)));
  if (child == 0) {
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

absl::StatusOr<int> Plot(const Options& options) {
  // Said here, in the words of all commands, rather than by a Python traceback.
  SPEXD_RETURN_IF_ERROR(Source::FromFile(options.frame).status());
  for (const std::string& path : {options.image, options.model}) {
    if (!path.empty()) SPEXD_RETURN_IF_ERROR(Source::FromFile(path).status());
  }
  SPEXD_RETURN_IF_ERROR(CheckWritable(options.output));
  SPEXD_ASSIGN_OR_RETURN(const std::string script, FindScript());
  const char* chosen = std::getenv("SPEXD_PYTHON");
  std::vector<std::string> arguments = {chosen != nullptr ? chosen : "python3", script, options.frame,
                                        options.output};
  if (!options.image.empty()) arguments.insert(arguments.end(), {"--image", options.image});
  if (!options.model.empty()) arguments.insert(arguments.end(), {"--model", options.model});
  if (!options.fibres.empty()) arguments.insert(arguments.end(), {"--fibres", options.fibres});
  SPEXD_ASSIGN_OR_RETURN(const int code, RunProgram(arguments));
  if (code == 127) {
    return absl::FailedPreconditionError(absl::StrCat("spex plot needs Python: ", arguments[0],
                                                      " was not found (Debian: apt-get install python3)"));
  }
  return code;
}

int RunPlot(const Options& options) {
  const absl::StatusOr<int> code = Plot(options);
  return code.ok() ? *code : Fail(code.status());
}

}  // namespace

void AddPlot(CLI::App* app, Action* action) {
  auto options = std::make_shared<Options>();
  Options& o = *options;
  CLI::App* command =
      app->add_subcommand("plot", "Draw a frame: spectra with errors, image beside model and residual");
  command->add_option("frame", o.frame, "Frame")->required();
  command->add_option("-o,--output", o.output, "Picture to write (.png, .pdf, .svg)")->required();
  command->add_option("--image", o.image, "Preprocessed frame that the spectra came from");
  command->add_option("--model", o.model, "Model image (spex -m)");
  command->add_option("--fibres", o.fibres, "Fibres to draw, as 3,17,40; default: a few of different kinds");
  command->callback([options, action] { *action = [options] { return RunPlot(*options); }; });
}

}  // namespace spexd::cli
