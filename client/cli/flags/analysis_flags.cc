#include "client/cli/flags/analysis_flags.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "client/cli/terminal/frame_output.h"
#include "core/base/status_macros.h"
#include "core/fits/hdu/output_file.h"

namespace spexd::cli {
namespace {

constexpr char kGroup[] = "Products";  // heading in --help

}  // namespace

void AddProductFiles(CLI::App* command, ProductPaths* files) {
  ProductPaths& f = *files;
  command->add_option("--sky", f.sky, "File to write: sky model")->type_name("FILE")->group(kGroup);
  command->add_option("--sframe", f.sframe, "File to write: sky-subtracted spectra")
      ->type_name("FILE")
      ->group(kGroup);
  command->add_option("--velocity-out", f.velocities, "File to write: table of velocities")
      ->type_name("FILE")
      ->group(kGroup);
  command->add_option("--lines-out", f.lines, "File to write: table of emission-line redshifts")
      ->type_name("FILE")
      ->group(kGroup);
}

void AddProductInputs(CLI::App* command, ProductInputs* inputs) {
  command
      ->add_option("--fiberflat", inputs->fiberflats,
                   "Fiberflat by which the frames are divided first (HDU FIBERFLAT); once for each CAMERA of "
                   "the frames")
      ->type_name("FILE")
      ->expected(1)
      ->take_all()
      ->allow_extra_args(false)
      ->group(kGroup);
  command
      ->add_option("--velocity", inputs->templates,
                   "Library of star templates for velocities, or on a server sha256:HASH of a loaded one")
      ->type_name("FILE")
      ->group(kGroup);
}

void AddAskedProducts(CLI::App* command, client::JobProducts* asked) {
  command->add_flag("--sky", asked->sky, "Also compute the sky model")->group(kGroup);
  command->add_flag("--lines", asked->lines, "Also fit redshifts of emission lines")->group(kGroup);
  command
      ->add_option("--fiberflat", asked->fiberflat,
                   "Fiberflat by which the frame is divided first (HDU FIBERFLAT)")
      ->type_name("FILE")
      ->group(kGroup);
  command
      ->add_option("--velocity", asked->templates, "Library of star templates; also fit velocities of stars")
      ->type_name("FILE")
      ->group(kGroup);
}

absl::Status CheckAskedProducts(const client::JobProducts& asked) {
  if (asked.fiberflat.empty() || asked.any()) return absl::OkStatus();
  return absl::InvalidArgumentError("--fiberflat: no product is asked for; see --sky, --lines, --velocity");
}

absl::Status CheckAnalysisFlags(const AnalysisFlags& flags, const std::vector<std::string>& others) {
  const ProductPaths& files = flags.files;
  const ProductInputs& inputs = flags.inputs;
  if (inputs.templates.empty() != files.velocities.empty()) {
    return absl::InvalidArgumentError("--velocity TEMPLATES and --velocity-out FILE go together");
  }
  if (inputs.sky_subtracted && (!files.sky.empty() || !files.sframe.empty())) {
    return absl::InvalidArgumentError("--sky-subtracted: there is no sky left for --sky or --sframe");
  }
  if (!inputs.fiberflats.empty() && !files.any()) {
    return absl::InvalidArgumentError("--fiberflat: no product is asked for");
  }
  std::vector<std::string> read = others;
  read.insert(read.end(), inputs.fiberflats.begin(), inputs.fiberflats.end());
  read.push_back(inputs.templates);
  return CheckProductFiles(files, read);
}

absl::Status CheckProductFiles(const ProductPaths& files, const std::vector<std::string>& others) {
  std::vector<std::string> taken = others;
  for (const auto& [name, path] : files.Named()) {
    const auto same = [&path = path](const std::string& other) {
      return !other.empty() && SameFile(path, other);
    };
    if (std::any_of(taken.begin(), taken.end(), same)) {
      return absl::InvalidArgumentError(absl::StrCat(path, ": a product must have a file of its own"));
    }
    taken.push_back(path);
    SPEXD_RETURN_IF_ERROR(CheckWritable(path));
  }
  return absl::OkStatus();
}

client::JobProducts ProductsToAsk(const ProductPaths& files, const ProductInputs& inputs) {
  return {.sky = !files.sky.empty() || !files.sframe.empty(),
          .lines = !files.lines.empty(),
          .templates = files.velocities.empty() ? "" : inputs.templates,
          .fiberflat = ""};
}

absl::Status CheckWereAsked(const ProductPaths& files, const std::optional<NamedProducts>& made) {
  const FrameProducts none;
  const FrameProducts& products = made.has_value() ? made->products : none;
  const struct {
    const char* flag;
    const std::string& path;
    Product product;
    const char* submit;
  } asked[] = {{"--sky", files.sky, Product::kSky, "--sky"},
               {"--sframe", files.sframe, Product::kSky, "--sky"},
               {"--velocity-out", files.velocities, Product::kVelocity, "--velocity"},
               {"--lines-out", files.lines, Product::kLines, "--lines"}};
  for (const auto& file : asked) {
    if (!file.path.empty() && absl::IsCancelled(InfoOf(file.product).StatusIn(products)))
      return absl::InvalidArgumentError(absl::StrCat(file.flag, ": submitted without ", file.submit));
  }
  return absl::OkStatus();
}

}  // namespace spexd::cli
