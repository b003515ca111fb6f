// The dispersion of a whole wavelength grid over a fibre's rows, ordered by row.
#ifndef SPEXD_CORE_TRACES_LIGHT_ROW_DISPERSION_H_
#define SPEXD_CORE_TRACES_LIGHT_ROW_DISPERSION_H_

#include <vector>

#include "core/base/array.h"
#include "core/model/psf.h"
#include "core/traces/light/dispersion.h"

namespace spexd::traces {

// The largest number of bins in a row, counted from its first bin. Spots of bins further apart do not
// overlap.
inline constexpr int kMaxRowBins = 64;

// The light of each row as a sum over k of s[first_bin + k] value(row, k).
struct RowDispersion {
  std::vector<int> first_bin;  // [row]
  Array<float, 2> value,
      slope;  // [row, bin - first_bin]; 0 if a row has fewer bins. A row has 8, 16, .. slots
};

RowDispersion ByRow(const Dispersion& dispersion, int rows);

// The most Angstrom in a row, at 9 points of each fibre's trace; 0 if no trace runs upwards.
double SteepestDispersion(const Psf& psf);

// Sums of Psi^T W Psi and Psi^T W g over some fibres.
struct NormalSums {
  Array<float, 2> normal;     // [bin, bins further on]; as wide as a row has slots, or kMaxRowBins
  std::vector<double> right;  // [bin]
};

// Adds a fibre with row spectrum `flux` and its weights W, both [row]. REQUIRES: `sums` has as many slots as
// `dispersion`, or more.
void AddNormal(const RowDispersion& dispersion, const float* flux, const float* weight, NormalSums* sums);

// Computes the light of a spectrum in the fibre's rows, and its derivative with respect to the trace's row,
// both [row]. Beyond the last bin, `spectrum` [bin] continues with 0 for as many bins as a row has slots.
void DisperseSpectrum(const RowDispersion& dispersion, const std::vector<float>& spectrum, float* light,
                      float* slope);

}  // namespace spexd::traces

#endif  // SPEXD_CORE_TRACES_LIGHT_ROW_DISPERSION_H_
