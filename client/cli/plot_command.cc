#include <memory>
#include <string>
#include <vector>

#include "client/cli/commands.h"
#include "client/cli/exit_code.h"
#include "client/cli/python_script.h"
#include "core/base/status_macros.h"
#include "core/fits/readers.h"
#include "core/fits/writers.h"

namespace spexd::cli {
namespace {

struct Options {
  std::string frame, output, image, model, fibres;
};

absl::StatusOr<int> Plot(const Options& options) {
  // Reported here, in the style of all commands, rather than by a Python traceback.
  SPEXD_RETURN_IF_ERROR(Source::FromFile(options.frame).status());
  for (const std::string& path : {options.image, options.model}) {
    if (!path.empty()) SPEXD_RETURN_IF_ERROR(Source::FromFile(path).status());
  }
  SPEXD_RETURN_IF_ERROR(CheckWritable(options.output));
  std::vector<std::string> arguments = {options.frame, options.output};
  if (!options.image.empty()) arguments.insert(arguments.end(), {"--image", options.image});
  if (!options.model.empty()) arguments.insert(arguments.end(), {"--model", options.model});
  if (!options.fibres.empty()) arguments.insert(arguments.end(), {"--fibres", options.fibres});
  return RunPythonScript("spex plot", "plot_frame.py", arguments);
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
