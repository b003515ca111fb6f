#include "client/cli/flags/batch_products.h"

#include <algorithm>
#include <filesystem>

#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"

namespace spexd::cli {

bool BatchProducts::Has(const char* name) const {
  return std::find(names.begin(), names.end(), name) != names.end();
}

CLI::Option* AddProductNames(CLI::App* command, std::vector<std::string>* names) {
  return command
      ->add_option("--products", *names,
                   "Products to write, separated by commas. For each frame: sky, sframe, velocities, "
                   "redshifts. For each exposure, over its arms: exposure-velocities, exposure-redshifts")
      ->delimiter(',')
      ->check(CLI::IsMember(
          {"sky", "sframe", "velocities", "redshifts", "exposure-velocities", "exposure-redshifts"}))
      ->group("Products");
}

absl::Status CheckBatchProducts(const BatchProducts& products) {
  const bool velocities = products.Has("velocities") || products.Has("exposure-velocities");
  if (velocities && products.inputs.templates.empty()) {
    return absl::InvalidArgumentError(
        "--products: velocities need templates of stars; name them with --velocity");
  }
  if (!velocities && !products.inputs.templates.empty()) {
    return absl::InvalidArgumentError(
        "--velocity: no velocities are asked for; add --products velocities or exposure-velocities");
  }
  if (!products.any() && !products.inputs.fiberflats.empty()) {
    return absl::InvalidArgumentError("--fiberflat: no product is asked for; see --products");
  }
  return absl::OkStatus();
}

std::string NameBeside(const std::string& frame, const std::string& prefix) {
  const std::filesystem::path path(frame);
  const std::string name = path.filename().string();
  return (path.parent_path() / absl::StrCat(prefix, "-", absl::StripPrefix(name, "frame-"))).string();
}

ProductPaths NameProducts(const BatchProducts& products, const std::string& frame) {
  ProductPaths paths;
  if (products.Has("sky")) paths.sky = NameBeside(frame, "sky");
  if (products.Has("sframe")) paths.sframe = NameBeside(frame, "sframe");
  if (products.Has("velocities")) paths.velocities = NameBeside(frame, "rvtab");
  if (products.Has("redshifts")) paths.lines = NameBeside(frame, "zlines");
  return paths;
}

}  // namespace spexd::cli
