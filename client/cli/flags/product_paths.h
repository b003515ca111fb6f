// Files that the products of one frame are written to.
#ifndef SPEXD_CLIENT_CLI_FLAGS_PRODUCT_PATHS_H_
#define SPEXD_CLIENT_CLI_FLAGS_PRODUCT_PATHS_H_

#include <string>
#include <utility>
#include <vector>

namespace spexd::cli {

// "": not asked for.
struct ProductPaths {
  std::string sky, sframe, velocities, lines;

  // The names of the products as --products and records have them, with the files of those that are asked
  // for.
  std::vector<std::pair<std::string, std::string>> Named() const {
    std::vector<std::pair<std::string, std::string>> named;
    for (const auto& [name, path] : {std::pair("sky", sky), std::pair("sframe", sframe),
                                     std::pair("velocities", velocities), std::pair("redshifts", lines)}) {
      if (!path.empty()) named.emplace_back(name, path);
    }
    return named;
  }
  bool any() const { return !(sky.empty() && sframe.empty() && velocities.empty() && lines.empty()); }
};

// What products are made from, beside the frame.
struct ProductInputs {
  std::vector<std::string> fiberflats;  // none, one for all frames, or one for each CAMERA
  std::string templates;                // of velocities; "": none
  bool sky_subtracted = false;          // frames have no sky in them any more
};

}  // namespace spexd::cli

#endif  // SPEXD_CLIENT_CLI_FLAGS_PRODUCT_PATHS_H_
