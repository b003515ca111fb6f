// Stage "solve": banded Cholesky and the flux.
#ifndef SPEXD_CORE_EXTRACT_CPU_SOLVE_H_
#define SPEXD_CORE_EXTRACT_CPU_SOLVE_H_

#include "core/extract/cpu/tiled_band.h"

namespace spexd::cpu {

// Replaces the symmetric matrix (lower part) by its Cholesky factor L, A = L L^T, and b by A^-1 b. b has room
// for whole tiles, zero behind the last unknown. A pivot that rounding has made tiny or negative is raised to
// kLeastPivot of its diagonal entry, so that the result stays finite.
void CholeskySolve(TiledBand* matrix, double* b);

}  // namespace spexd::cpu

#endif  // SPEXD_CORE_EXTRACT_CPU_SOLVE_H_
