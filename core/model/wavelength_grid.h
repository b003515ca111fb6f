// Uniform wavelength grids, in Angstrom (vacuum).
#ifndef SPEXD_CORE_MODEL_WAVELENGTH_GRID_H_
#define SPEXD_CORE_MODEL_WAVELENGTH_GRID_H_

#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace spexd {

struct WavelengthGrid {
  double first = 0;  // centre of bin 0
  double step = 0;   // bin width, > 0
  int count = 0;

  double Wave(int bin) const { return first + bin * step; }
  double last() const { return Wave(count - 1); }
  std::vector<double> Values() const;
  // The grid with every wavelength multiplied by `factor` (barycentric correction).
  WavelengthGrid Scaled(double factor) const { return {first * factor, step * factor, count}; }

  friend bool operator==(const WavelengthGrid& a, const WavelengthGrid& b) = default;
};

inline constexpr int kMaxWavelengthBins = 1000000;

// The bins of numpy's arange(wmin, wmax + dw/2, dw), equal to the bit. InvalidArgument, naming the value and
// the limit, if a value is not finite, the range is reversed, dw <= 0, or there are too many bins.
absl::StatusOr<WavelengthGrid> MakeWavelengthGrid(double wmin, double wmax, double dw);

// Parses "wmin,wmax,dw".
absl::StatusOr<WavelengthGrid> ParseWavelengthGrid(absl::string_view text);

}  // namespace spexd

#endif  // SPEXD_CORE_MODEL_WAVELENGTH_GRID_H_
