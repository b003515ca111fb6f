// The check that frames to be added to each other are on one grid.
#ifndef SPEXD_CORE_PRODUCTS_SAME_GRID_H_
#define SPEXD_CORE_PRODUCTS_SAME_GRID_H_

#include <cmath>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/str_format.h"
#include "core/model/wavelength_grid.h"

namespace spexd {

// InvalidArgument, naming the frame (`name`), if its grid differs from that of the frames before it.
inline absl::Status CheckSameGrid(const std::string& name, const WavelengthGrid& grid,
                                  const WavelengthGrid& before) {
  constexpr double kSameWave = 1e-6;  // Angstrom
  if (grid.count == before.count && std::abs(grid.first - before.first) <= kSameWave &&
      std::abs(grid.last() - before.last()) <= kSameWave) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(absl::StrFormat(
      "%s: its grid is %g to %g Angstrom in %d bins, that of the frames before it %g to %g in %d; only "
      "frames on one grid can be added",
      name, grid.first, grid.last(), grid.count, before.first, before.last(), before.count));
}

}  // namespace spexd

#endif  // SPEXD_CORE_PRODUCTS_SAME_GRID_H_
