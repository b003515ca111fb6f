// The minimum work of each stage: operations and bytes of memory traffic.
#ifndef SPEXD_CLIENT_BENCH_FLOOR_H_
#define SPEXD_CLIENT_BENCH_FLOOR_H_

#include <array>

#include "core/extract/stage.h"
#include "core/model/psf.h"
#include "core/model/wavelength_grid.h"

namespace spexd::bench {

struct Floor {
  double flops = 0;  // a fused multiply-add counts two
  double bytes =
      0;  // bytes that a stage reads from others and writes for others, each once, if not in a cache
};
using StageFloors = std::array<Floor, kStageCount>;

// How fibres hand data from stage to stage. A core that takes one bundle after the other finds the data in
// its cache. A device that takes all fibres of a frame through a stage at once does not.
enum class Handover { kInCache, kInMemory };

// The floor for all bundles of a PSF on a grid, without a model image (see core/extract/cost_model.h). It
// assumes the usual width of the precision and the usual poles (13 at 0.8 Angstrom); holes in the data take
// more.
StageFloors FloorOfFrame(const Psf& psf, const WavelengthGrid& grid, int bundle_size, Handover handover);

// Whether nearly all of a stage's operations are products of small matrices, which matrix units could do.
bool IsMatrixWork(Stage stage);

}  // namespace spexd::bench

#endif  // SPEXD_CLIENT_BENCH_FLOOR_H_
