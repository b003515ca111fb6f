// spex templates: libraries of star templates.
#include <cstdio>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "client/cli/commands/commands.h"
#include "client/cli/terminal/exit_code.h"
#include "core/base/machine/cpus.h"
#include "core/base/status_macros.h"
#include "core/base/threads/guard.h"
#include "core/fits/hdu/output_file.h"
#include "core/products/make_templates.h"
#include "core/products/synthetic_templates.h"
#include "core/products/template_file.h"

namespace spexd::cli {
namespace {

struct TemplatesCommandOptions {
  TemplateRequest request;
  std::vector<double> range;
  std::vector<std::string> parameters;
  std::string medium, output;
  int threads = 0;
  bool synthetic = false;
  bool quiet = false;
};

absl::StatusOr<std::pair<std::string, std::string>> ParseParameter(const std::string& text) {
  const std::vector<std::string> parts = absl::StrSplit(text, '=');
  if (parts.size() == 2 && !parts[0].empty() && !parts[1].empty()) return std::pair(parts[0], parts[1]);
  return absl::InvalidArgumentError(absl::StrFormat("--parameter \"%s\": expected NAME=KEYWORD", text));
}

absl::StatusOr<TemplateLibrary> FromFolder(const TemplatesCommandOptions& options, int threads) {
  TemplateRequest request = options.request;
  if (request.folder.empty()) {
    return absl::InvalidArgumentError(
        "templates make: name a folder of spectra, or give --synthetic for a library without any");
  }
  if (options.range.empty()) {
    return absl::InvalidArgumentError("templates make: --range is required with a folder of spectra");
  }
  if (!options.parameters.empty()) request.layout.parameters.clear();
  for (const std::string& text : options.parameters) {
    SPEXD_ASSIGN_OR_RETURN(request.layout.parameters.emplace_back(), ParseParameter(text));
  }
  if (!options.medium.empty()) {
    request.layout.medium = options.medium == "air" ? Medium::kAir : Medium::kVacuum;
  }
  request.first = options.range[0];
  request.last = options.range[1];
  request.threads = threads;
  return MakeTemplates(request);
}

absl::StatusOr<TemplateLibrary> Synthetic(const TemplatesCommandOptions& options, int threads) {
  SyntheticTemplates request;
  if (!options.range.empty()) {
    request.first = options.range[0];
    request.last = options.range[1];
  }
  request.step = options.request.step;
  request.threads = threads;
  return MakeSyntheticTemplates(request);
}

absl::Status Make(const TemplatesCommandOptions& options) {
  const int threads = options.threads > 0 ? options.threads : AvailableCpus();
  SPEXD_RETURN_IF_ERROR(CheckWritable(options.output));
  SPEXD_ASSIGN_OR_RETURN(const TemplateLibrary library,
                         options.synthetic ? Synthetic(options, threads) : FromFolder(options, threads));
  SPEXD_RETURN_IF_ERROR(
      WriteTemplates(library, options.output, options.synthetic ? SyntheticRemarks() : TemplateRemarks{}));
  if (options.quiet) return absl::OkStatus();
  std::printf("%s: %d templates of %lld samples, %g km/s apart\n", options.output.c_str(),
              library.templates(), static_cast<long long>(library.samples()), options.request.step);
  for (size_t k = 0; k < library.names.size(); ++k) {
    std::printf("  %s: %zu values from %g to %g\n", library.names[k].c_str(), library.axes[k].size(),
                library.axes[k].front(), library.axes[k].back());
  }
  return absl::OkStatus();
}

}  // namespace

void AddTemplates(CLI::App* app, Action* action) {
  CLI::App* templates = app->add_subcommand("templates", "Make libraries of star templates, for velocities");
  templates->require_subcommand(1);
  auto options = std::make_shared<TemplatesCommandOptions>();
  TemplatesCommandOptions& o = *options;
  CLI::App* command = templates->add_subcommand("make",
                                                "Make a library from a folder of FITS spectra with their "
                                                "parameters in the headers, or a synthetic one");
  CLI::Option* const folder = command
                                  ->add_option("folder", o.request.folder,
                                               "Folder of spectra, such as PHOENIX; subfolders are read too")
                                  ->type_name("DIR");
  CLI::Option* const synthetic = command->add_flag(
      "--synthetic", o.synthetic,
      "Make stars from a formula instead of a folder, to try out programs; not for velocities of real stars");
  command->add_option("-o,--output", o.output, "Library to write")->type_name("FILE")->required();
  command
      ->add_option("--range", o.range,
                   "First and last wavelength of the frames in vacuum, in Angstrom, such as 3600,9824. The "
                   "library extends 1000 km/s and 13 Angstrom beyond. Default with --synthetic: 3500,10000")

      ->delimiter(',')
      ->expected(2);
  command->add_option("--step", o.request.step, "Step between samples in km/s, at most 10")
      ->capture_default_str();
  command->add_option("--medium", o.medium, "Medium of the wavelengths, if the headers do not state it")
      ->check(CLI::IsMember({"air", "vacuum"}));
  command
      ->add_option("--wave", o.request.layout.wave_file,
                   "File of the wavelengths of all spectra. Default: the folder's WAVE*.fits, or the headers")
      ->type_name("FILE");
  command
      ->add_option("--parameter", o.parameters,
                   "Parameter and its keyword in the headers; may be repeated. Default: TEFF=PHXTEFF, "
                   "LOGG=PHXLOGG, FEH=PHXM_H")
      ->type_name("NAME=KEYWORD")
      ->take_all();
  synthetic->excludes(folder);
  for (const char* of_spectra : {"--medium", "--wave", "--parameter"}) {
    synthetic->excludes(command->get_option(of_spectra));
  }
  command->add_option("--threads", o.threads, "Threads. 0: one per processor")->check(CLI::Range(0, 1024));
  command->add_flag("-q,--quiet", o.quiet, "Print errors only");
  command->callback([options, action] {
    *action = [options] {
      const absl::Status status = CatchExceptions([&] { return Make(*options); });
      return status.ok() ? static_cast<int>(kOk) : Fail(status);
    };
  });
}

}  // namespace spexd::cli
