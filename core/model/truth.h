// Simulated true spectra.
#ifndef SPEXD_CORE_MODEL_TRUTH_H_
#define SPEXD_CORE_MODEL_TRUTH_H_

#include <vector>

#include "core/base/array.h"

namespace spexd {

struct Truth {
  std::vector<int> fibres;   // PSF row of each spectrum
  std::vector<double> wave;  // Angstrom, increasing, uniform
  Array<float, 2> flux;      // [spectrum, wave], electrons / Angstrom
};

}  // namespace spexd

#endif  // SPEXD_CORE_MODEL_TRUTH_H_
