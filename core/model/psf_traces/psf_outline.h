// PSFs without the coefficients of their terms, as they are known before their tables are read.
#ifndef SPEXD_CORE_MODEL_PSF_TRACES_PSF_OUTLINE_H_
#define SPEXD_CORE_MODEL_PSF_TRACES_PSF_OUTLINE_H_

#include <algorithm>

#include "core/model/psf.h"

namespace spexd {

// Whether all terms have coefficients. Spots can be evaluated only then.
inline bool HasAllTerms(const Psf& psf) {
  return std::none_of(psf.terms.begin(), psf.terms.end(),
                      [](const GaussHermiteTerm& term) { return term.amplitude.empty(); });
}

}  // namespace spexd

#endif  // SPEXD_CORE_MODEL_PSF_TRACES_PSF_OUTLINE_H_
