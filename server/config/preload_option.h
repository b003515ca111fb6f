// The value of --preload-psf.
#ifndef SPEXD_SERVER_CONFIG_PRELOAD_OPTION_H_
#define SPEXD_SERVER_CONFIG_PRELOAD_OPTION_H_

#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "core/model/wavelength_grid.h"

namespace spexd {

struct Preload {
  std::string path;
  std::optional<WavelengthGrid> grid;  // grid for which the PSF is prepared; none: it is only loaded
  int bundle_size = 25;
};

// Parses "PATH", "PATH,first,last,step" or "PATH,first,last,step,bundle size"; PATH is absolute, wavelengths
// are in Angstrom. InvalidArgument begins with `name` and states what is wrong.
absl::StatusOr<Preload> ParsePreload(const std::string& name, const std::string& text);

}  // namespace spexd

#endif  // SPEXD_SERVER_CONFIG_PRELOAD_OPTION_H_
