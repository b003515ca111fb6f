// Profiles of several rows side by side.
#ifndef SPEXD_CORE_TRACES_ROWS_PROFILE_TILE_H_
#define SPEXD_CORE_TRACES_ROWS_PROFILE_TILE_H_

#include "core/model/psf.h"

namespace spexd::traces {

inline constexpr int kLanes = 16;

struct alignas(64) ProfileTile {
  float centre[kLanes];                        // relative to the middle pixel
  float inverse_sigma[kLanes];                 // 1 / pixels
  float coeff[kMaxHermiteDegree + 1][kLanes];  // coefficients of He_a; 0 beyond the PSF's degree
};

}  // namespace spexd::traces

#endif  // SPEXD_CORE_TRACES_ROWS_PROFILE_TILE_H_
