// The dispersion of a whole grid of wavelength bins over a fibre's rows, ordered by row.
#ifndef SPEXD_CORE_TRACES_LIGHT_ROW_DISPERSION_H_
#define SPEXD_CORE_TRACES_LIGHT_ROW_DISPERSION_H_

#include <vector>

#include "core/base/array.h"
#include "core/model/psf.h"
#include "core/traces/light/dispersion.h"

namespace spexd::traces {

// Bins in a row that are kept, the first ones; spots of bins further apart do not overlap.
inline constexpr int kMaxRowBins = 64;

// A row's light is sum over k of s[first_bin + k] value(row, k).
struct RowDispersion {
  std::vector<int> first_bin;  // [row]
  Array<float, 2> value,
      slope;  // [row, bin - first_bin]; 0 where a row has fewer bins. 8, 16, .. slots a row
};

RowDispersion ByRow(const Dispersion& dispersion, int rows);

// The most Angstrom in a row, of 9 points of each fibre's trace; 0 if none runs upwards.
double SteepestDispersion(const Psf& psf);

// Sums of Psi^T W Psi and Psi^T W g over some fibres.
struct NormalSums {
  Array<float, 2> normal;     // [bin, bins further on], kMaxRowBins or as many as the slots of a row
  std::vector<double> right;  // [bin]
};

// Adds a fibre with row spectrum `flux` and its weights W, [row]. REQUIRES: sums of as many slots as
// `dispersion` has, or more.
void AddNormal(const RowDispersion& dispersion, const float* flux, const float* weight, NormalSums* sums);

// What the fibre's rows hold of a spectrum, and its derivative with respect to the trace's row, [row].
// `spectrum` [bin] continues with 0 beyond the last bin, for as many bins as a row has slots.
void DisperseSpectrum(const RowDispersion& dispersion, const std::vector<float>& spectrum, float* light,
                      float* slope);

}  // namespace spexd::traces

#endif  // SPEXD_CORE_TRACES_LIGHT_ROW_DISPERSION_H_
