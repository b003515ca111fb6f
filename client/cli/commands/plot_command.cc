#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "client/cli/commands/commands.h"
#include "client/cli/commands/python_script.h"
#include "client/cli/terminal/exit_code.h"
#include "core/base/status_macros.h"
#include "core/fits/hdu/output_file.h"
#include "core/fits/readers.h"
#include "core/fits/writers.h"

namespace spexd::cli {
namespace {

struct PlotCommandOptions {
  std::vector<std::string> spectra;  // a frame, frames of several cameras, or a file of spectra
  std::string output, html, image, model, psf, sframe, truth, window, window_spectra, fibres, targets;
  std::string velocities, redshifts, star_models;
  bool resolution = false;

  bool any_products() const { return !velocities.empty() || !redshifts.empty(); }
};

// Flags that spex and the script have in common, with their values.
using Flags = std::vector<std::pair<const char*, const std::string*>>;

std::vector<std::string> Arguments(const PlotCommandOptions& options, const std::string& output,
                                   const Flags& flags) {
  std::vector<std::string> arguments = options.spectra;
  arguments.push_back(output);
  for (const auto& [flag, value] : flags) {
    // Flag and value are one word, because a separate value could look like a flag.
    if (!value->empty()) arguments.push_back(absl::StrCat(flag, "=", *value));
  }
  return arguments;
}

absl::Status Check(const PlotCommandOptions& options) {
  if (options.output.empty() && options.html.empty()) {
    return absl::InvalidArgumentError("plot takes -o for a picture, --html for a page, or both");
  }
  if (absl::EndsWith(options.output, ".html")) {
    return absl::InvalidArgumentError(
        absl::StrCat("-o ", options.output, ": a picture is .png, .pdf or .svg; --html writes a page"));
  }
  if (options.any_products() && !options.output.empty() && !options.truth.empty()) {
    return absl::InvalidArgumentError(
        "--truth: a picture of --velocities or --redshifts has none; a page (--html) may have both");
  }
  if (options.spectra.size() > 1 && !options.any_products()) {
    return absl::InvalidArgumentError(
        absl::StrCat(options.spectra[1], ": several frames are drawn with --velocities or --redshifts"));
  }
  // Files are checked here, so that errors look like those of other commands and not like a Python traceback.
  for (const std::string& path : options.spectra) SPEXD_RETURN_IF_ERROR(Source::FromFile(path).status());
  for (const std::string* path :
       {&options.image, &options.model, &options.psf, &options.sframe, &options.truth, &options.velocities,
        &options.redshifts, &options.star_models}) {
    if (!path->empty()) SPEXD_RETURN_IF_ERROR(Source::FromFile(*path).status());
  }
  for (const std::string* path : {&options.output, &options.html}) {
    if (!path->empty()) SPEXD_RETURN_IF_ERROR(CheckWritable(*path));
  }
  return absl::OkStatus();
}

// Whether a file was written by spex pca.
absl::StatusOr<bool> HasComponents(const std::string& path) {
  SPEXD_ASSIGN_OR_RETURN(const Source source, Source::FromFile(path));
  return ReadImageHduDouble(source, "EIGENVECTORS").ok();
}

absl::StatusOr<int> PlotComponents(const PlotCommandOptions& options) {
  const bool others = options.resolution || !options.html.empty() || !options.image.empty() ||
                      !options.sframe.empty() || !options.truth.empty() || !options.fibres.empty() ||
                      !options.targets.empty() || options.any_products();
  if (others)
    return absl::InvalidArgumentError(
        absl::StrCat(options.spectra[0], ": principal components are drawn with -o alone"));
  return RunPythonScript("spex plot", "plot_pca.py", {options.spectra[0], options.output});
}

absl::StatusOr<int> Plot(const PlotCommandOptions& options) {
  SPEXD_RETURN_IF_ERROR(Check(options));
  SPEXD_ASSIGN_OR_RETURN(const bool components, HasComponents(options.spectra[0]));
  if (components) return PlotComponents(options);
  const Flags products = {{"--sframe", &options.sframe},       {"--velocities", &options.velocities},
                          {"--redshifts", &options.redshifts}, {"--star-models", &options.star_models},
                          {"--fibres", &options.fibres},       {"--targets", &options.targets}};
  int page = kOk;
  if (!options.html.empty()) {
    Flags of_page = products;
    of_page.emplace_back("--truth", &options.truth);
    SPEXD_ASSIGN_OR_RETURN(
        page, RunPythonScript("spex plot", "plot_page.py", Arguments(options, options.html, of_page)));
  }
  if (page != kOk || options.output.empty()) return page;
  if (options.any_products())
    return RunPythonScript("spex plot", "plot_products.py", Arguments(options, options.output, products));
  Flags flags = {{"--sframe", &options.sframe},
                 {"--truth", &options.truth},
                 {"--fibres", &options.fibres},
                 {"--targets", &options.targets}};
  flags.insert(flags.end(), {{"--image", &options.image},
                             {"--model", &options.model},
                             {"--psf", &options.psf},
                             {"--window", &options.window},
                             {"--window-spectra", &options.window_spectra}});
  std::vector<std::string> arguments = Arguments(options, options.output, flags);
  if (options.resolution) arguments.push_back("--resolution");
  return RunPythonScript("spex plot", "plot_frame.py", arguments);
}

int RunPlot(const PlotCommandOptions& options) {
  const absl::StatusOr<int> code = Plot(options);
  return code.ok() ? *code : Fail(code.status());
}

// Adds the flags of products, which exclude `others`.
void AddProducts(CLI::App* command, const std::vector<CLI::Option*>& others, PlotCommandOptions* options) {
  CLI::Option* const flags[] = {
      command
          ->add_option("--velocities", options->velocities,
                       "Table of velocities; draws its stars instead, also in a page: best template, "
                       "continuum, residual, chi-square by velocity")
          ->type_name("FILE"),
      command
          ->add_option("--redshifts", options->redshifts,
                       "Table of redshifts; draws its galaxies instead, also in a page: their lines at the "
                       "redshift, and their stack")
          ->type_name("FILE")};
  for (CLI::Option* flag : flags) {
    for (CLI::Option* other : others) flag->excludes(other);
  }
  command
      ->add_option("--star-models", options->star_models,
                   "Models of a joint fit (rvmod_*) for --velocities. Default: the file beside it")
      ->type_name("FILE")
      ->needs(flags[0]);
}

}  // namespace

void AddPlot(CLI::App* app, Action* action) {
  auto options = std::make_shared<PlotCommandOptions>();
  PlotCommandOptions& o = *options;
  CLI::App* command = app->add_subcommand(
      "plot",
      "Draw a frame: spectra with errors, image with model and residual; or an HTML page for browsing it");
  command
      ->add_option(
          "spectra", o.spectra,
          "Frame, sky-subtracted spectra (spex analyse --sframe) or components (spex pca). With --velocities "
          "or --redshifts also a file of spectra in several arms, or the frames of an exposure's cameras")
      ->type_name("FILE")
      ->required();
  CLI::Option* output =
      command->add_option("-o,--output", o.output, "Picture to write (.png, .pdf, .svg)")->type_name("FILE");
  command
      ->add_option("--html", o.html,
                   "HTML page to write, with all spectra; a single file that needs no network")
      ->type_name("FILE");
  CLI::Option* fibres =
      command
          ->add_option("--fibres", o.fibres,
                       "Fibres to draw, such as 3,17,40. Default: a few of different kinds; in a page all")
          ->type_name("LIST");
  command->add_option("--targets", o.targets, "TARGETIDs to draw instead of --fibres, separated by commas")
      ->type_name("LIST")
      ->excludes(fibres);
  command->add_option("--sframe", o.sframe, "Sky-subtracted spectra to draw too (spex analyse --sframe)")
      ->type_name("FILE");
  command
      ->add_option("--truth", o.truth,
                   "Simulated truth; multiplied by the resolution, it is drawn over the spectra")
      ->type_name("FILE");
  CLI::Option* resolution = command->add_flag(
      "--resolution", o.resolution, "Also draw the resolution of these fibres; a page always has it");
  CLI::Option* image =
      command->add_option("--image", o.image, "Preprocessed frame from which the spectra were extracted")
          ->type_name("FILE")
          ->needs(output);
  CLI::Option* model = command->add_option("--model", o.model, "Model image of the frame (spex -m)")
                           ->type_name("FILE")
                           ->needs(image);
  image->needs(model);
  CLI::Option* psf =
      command->add_option("--psf", o.psf, "PSF of the spectra; adds wavelengths to the image's rows")
          ->type_name("FILE")
          ->needs(image);
  CLI::Option* window =
      command
          ->add_option("--window", o.window,
                       "Part of the image to draw, as CCD columns and rows, such as 100:500,1800:2200")
          ->needs(image);
  command
      ->add_option(
          "--window-spectra", o.window_spectra,
          "Part of the image to draw, as fibres and wavelengths in Angstrom, such as 10:30,6500:6600")
      ->needs(psf)
      ->excludes(window);
  AddProducts(command, {image, resolution}, &o);
  command->callback([options, action] { *action = [options] { return RunPlot(*options); }; });
}

}  // namespace spexd::cli
