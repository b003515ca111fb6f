#include "core/model/wavelength_grid.h"

#include <cmath>

#include "absl/status/status.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "core/base/status_macros.h"
#include "core/base/text.h"

namespace spexd {

std::vector<double> WavelengthGrid::Values() const {
  std::vector<double> values(count);
  for (int j = 0; j < count; ++j) values[j] = Wave(j);
  return values;
}

absl::StatusOr<WavelengthGrid> MakeWavelengthGrid(double wmin, double wmax, double dw) {
  // Called only for errors: Abseil ends the process if it finds no memory for the text.
  const auto given = [&] { return absl::StrFormat("wavelength grid %g,%g,%g", wmin, wmax, dw); };
  if (!std::isfinite(wmin) || !std::isfinite(wmax) || !std::isfinite(dw)) {
    return absl::InvalidArgumentError(given() + ": wmin, wmax and dw must be finite");
  }
  if (dw <= 0) return absl::InvalidArgumentError(given() + ": dw must be greater than 0");
  if (wmin <= 0) return absl::InvalidArgumentError(given() + ": wmin must be greater than 0");
  if (wmax < wmin) return absl::InvalidArgumentError(given() + ": wmax must not be less than wmin");
  const double bins = std::ceil((wmax + 0.5 * dw - wmin) / dw);
  if (!(bins <= kMaxWavelengthBins)) {
    return absl::InvalidArgumentError(
        absl::StrFormat("%s: %g bins, the limit is %d", given(), bins, kMaxWavelengthBins));
  }
  // numpy's step is the difference of its first two values, whose rounding differs from dw.
  const double step = (wmin + dw) - wmin;
  if (!(step > 0)) return absl::InvalidArgumentError(given() + ": dw is lost in the rounding of wmin");
  return WavelengthGrid{wmin, step, static_cast<int>(bins)};
}

absl::StatusOr<WavelengthGrid> ParseWavelengthGrid(absl::string_view text) {
  const std::vector<absl::string_view> parts = absl::StrSplit(text, ',');
  double value[3];
  bool good = parts.size() == 3;
  for (size_t k = 0; good && k < 3; ++k) good = absl::SimpleAtod(parts[k], &value[k]);
  if (!good) {
    return absl::InvalidArgumentError(
        absl::StrFormat("wavelength grid \"%s\": expected wmin,wmax,dw in Angstrom", ForMessage(text)));
  }
  return MakeWavelengthGrid(value[0], value[1], value[2]);
}

}  // namespace spexd
