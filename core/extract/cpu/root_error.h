// The proof of a fibre's errors and resolution; its flux is proved by the residual.
#ifndef SPEXD_CORE_EXTRACT_CPU_ROOT_ERROR_H_
#define SPEXD_CORE_EXTRACT_CPU_ROOT_ERROR_H_

#include "core/extract/cpu/stages/band.h"
#include "core/extract/cpu/stages/resolution.h"

namespace spexd::cpu {

// The larger relative error of the identities |Q 1|^2 = 1^T P 1 and |Q f|^2 = f^T P f, over all bins
// including pads. `root`: Q of the precision P. `flux`: f, one value for each bin.
double RootError(const SymmetricBand& precision, const double* flux, const SquareRoot& root);

}  // namespace spexd::cpu

#endif  // SPEXD_CORE_EXTRACT_CPU_ROOT_ERROR_H_
