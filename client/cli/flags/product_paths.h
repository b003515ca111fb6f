// The files of one frame's products.
#ifndef SPEXD_CLIENT_CLI_FLAGS_PRODUCT_PATHS_H_
#define SPEXD_CLIENT_CLI_FLAGS_PRODUCT_PATHS_H_

#include <string>
#include <utility>
#include <vector>

namespace spexd::cli {

// Paths to write; "" for products that are not requested.
struct ProductPaths {
  std::string sky, sframe, velocities, lines;

  // Returns the requested products with their files. Names are as in --products and in records.
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

// Inputs of products other than the frame.
struct ProductInputs {
  std::vector<std::string> fiberflats;  // empty, one for all frames, or one for each CAMERA
  std::string templates;                // library of star templates for velocities; "": none
  bool sky_subtracted = false;          // the sky is already subtracted from the frames
};

}  // namespace spexd::cli

#endif  // SPEXD_CLIENT_CLI_FLAGS_PRODUCT_PATHS_H_
