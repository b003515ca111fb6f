// One spot in plain code, for plans and as a reference in tests of the engines.
#ifndef SPEXD_CORE_MODEL_REFERENCE_SPOT_H_
#define SPEXD_CORE_MODEL_REFERENCE_SPOT_H_

#include <vector>

#include "core/model/psf.h"

namespace spexd {

struct Spot {
  int first_column = 0;  // may lie off the CCD
  int first_row = 0;
  std::vector<double>
      // [row, column], psf.spot_rows() x psf.spot_columns(). The sum is 1, or 0 if the spot is empty
      // (SpotScale).
      values;
};

// Evaluates the spot of a fibre at a wavelength. REQUIRES: CheckPsf(psf) is OK, 0 <= fibre < psf.fibres.
void EvaluateSpot(const Psf& psf, int fibre, double wave, Spot* spot);

}  // namespace spexd

#endif  // SPEXD_CORE_MODEL_REFERENCE_SPOT_H_
