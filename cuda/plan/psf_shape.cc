#include "cuda/plan/psf_shape.h"

#include <cstring>
#include <variant>

#include "core/plan/grid_plan.h"
#include "cuda/plan/psf_arrays.h"

namespace spexd::cuda {

PsfShape ShapeOf(const Psf& psf, const WavelengthGrid& grid, int bundle_size) {
  PsfShape shape;
  shape.fibres = psf.fibres;
  shape.pad = PadBins(psf, grid);
  const WavelengthGrid padded = Padded(grid, shape.pad);
  shape.bins = padded.count;
  shape.first_wave = padded.first;
  shape.step = padded.step;
  shape.ccd_rows = psf.rows;
  shape.ccd_columns = psf.columns;
  shape.stamp = psf.stamp();
  shape.traces = ShapeOf({&psf.traces.x, &psf.traces.y});
  shape.model = std::visit([](const auto& spots) -> SpotModelShape { return ShapeOf(spots); }, psf.spots);
  shape.bundle_size = bundle_size;
  shape.fine_grid = IsFineGrid(grid);
  return shape;
}

void PackPsf(const Psf& psf, const PsfShape& shape, std::byte* packed) {
  const PsfArrays to = LayOutPsf(shape, packed);
  std::memset(packed, 0, PackedPsfBytes(shape));
  PackSeries({&psf.traces.x, &psf.traces.y}, shape.fibres, to.traces);
  std::visit(
      [&](const auto& spots) {
        using Arrays = decltype(LayOutSpots(ShapeOf(spots), 0, nullptr));
        PackSpots(spots, shape.fibres, std::get<Arrays>(to.model));
      },
      psf.spots);
}

}  // namespace spexd::cuda
