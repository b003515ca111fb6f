// The minimum work of each stage: operations and bytes of memory traffic.
#ifndef SPEXD_CLIENT_BENCH_FLOOR_H_
#define SPEXD_CLIENT_BENCH_FLOOR_H_

#include <array>

#include "core/extract/stage.h"
#include "core/model/psf.h"
#include "core/model/wavelength_grid.h"

namespace spexd::bench {

struct Floor {
  double flops = 0;  // a fused multiply-add counts as two
  double bytes =
      0;  // bytes that a stage reads from and writes for other stages, each once, unless they stay in a cache
};
using StageFloors = std::array<Floor, kStageCount>;

// How data pass from stage to stage. A core that processes one bundle after the other finds them in its
// cache. A device that processes all fibres of a frame in a stage at once does not.
enum class Handover { kInCache, kInMemory };

// Returns the floor of all bundles of a PSF on a grid, without a model image (see core/extract/cost_model.h).
// It assumes the usual width of the precision and the usual number of poles (13 at 0.8 Angstrom). Holes in
// the data take more.
StageFloors FloorOfFrame(const Psf& psf, const WavelengthGrid& grid, int bundle_size, Handover handover);

// Whether nearly all operations of a stage are products of small matrices, for which matrix units could be
// used.
bool IsMatrixWork(Stage stage);

}  // namespace spexd::bench

#endif  // SPEXD_CLIENT_BENCH_FLOOR_H_
