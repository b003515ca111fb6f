// Profiles of kLanes rows at once, in vector lanes. Included once for each of Highway's instruction sets.
#if defined(SPEXD_CORE_TRACES_ROWS_PROFILE_TILE_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef SPEXD_CORE_TRACES_ROWS_PROFILE_TILE_INL_H_
#undef SPEXD_CORE_TRACES_ROWS_PROFILE_TILE_INL_H_
#else
#define SPEXD_CORE_TRACES_ROWS_PROFILE_TILE_INL_H_
#endif

#include "core/traces/rows/profile_formula.h"
#include "core/traces/rows/profile_tile.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace spexd::traces {
namespace HWY_NAMESPACE {

template <int kDegree>
void EvaluateTileOfDegree(const ProfileTile& tile, int half, float (*phi)[kLanes], float (*dphi)[kLanes]) {
  alignas(64) float integral[kLanes] = {}, density[kLanes] = {};
  for (int edge = 0; edge <= 2 * half + 1; ++edge) {
    const float position = static_cast<float>(edge - half) - 0.5f;
    alignas(64) float next_integral[kLanes], next_density[kLanes];
    for (int t = 0; t < kLanes; ++t) {
      const float u = (position - tile.centre[t]) * tile.inverse_sigma[t];
      const ProfileEdge at = ProfileAt<kDegree>(u, &tile.coeff[0][t], kLanes);
      next_integral[t] = at.integral;
      next_density[t] = at.density * tile.inverse_sigma[t];
    }
    for (int t = 0; t < kLanes; ++t) {
      if (edge > 0) {
        phi[edge - 1][t] = next_integral[t] - integral[t];
        dphi[edge - 1][t] = density[t] - next_density[t];
      }
      integral[t] = next_integral[t];
      density[t] = next_density[t];
    }
  }
}

// Evaluates profiles integrated over the 2 half + 1 pixels about the middle one, and their derivatives with
// respect to the centre. `degree`: the highest degree of coefficients that are not 0.
HWY_INLINE void EvaluateTile(const ProfileTile& tile, int degree, int half, float (*phi)[kLanes],
                             float (*dphi)[kLanes]) {
  if (degree <= 6) return EvaluateTileOfDegree<6>(tile, half, phi, dphi);
  EvaluateTileOfDegree<kMaxHermiteDegree>(tile, half, phi, dphi);
}

}  // namespace HWY_NAMESPACE
}  // namespace spexd::traces
HWY_AFTER_NAMESPACE();

#endif  // SPEXD_CORE_TRACES_ROWS_PROFILE_TILE_INL_H_
