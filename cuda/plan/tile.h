// Square tiles of the band, shared by host plans and device code.
#ifndef SPEXD_CUDA_PLAN_TILE_H_
#define SPEXD_CUDA_PLAN_TILE_H_

#include "core/base/host_device.h"

namespace spexd::cuda {

inline constexpr int kTile = 8;
inline constexpr int kTileSize = kTile * kTile;
SPEXD_HOST_DEVICE inline int RoundedUp(int count, int multiple) {
  return (count + multiple - 1) / multiple * multiple;
}
SPEXD_HOST_DEVICE inline int TilesOf(int unknowns) { return (unknowns + kTile - 1) / kTile; }

}  // namespace spexd::cuda

#endif  // SPEXD_CUDA_PLAN_TILE_H_
