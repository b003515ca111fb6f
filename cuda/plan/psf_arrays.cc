#include "cuda/plan/psf_arrays.h"

#include <variant>

#include "cuda/memory/carver.h"

namespace spexd::cuda {
namespace {

// The arrays that the host packs come first; `packed_bytes` is where they end.
PsfArrays LayOut(const PsfShape& shape, Carver* carver, int64_t* packed_bytes) {
  const int64_t fibres = shape.fibres, spots = fibres * shape.bins;
  PsfArrays psf;
  psf.shape = shape;
  psf.traces = LayOutSeries(shape.traces, shape.fibres, carver);
  psf.model = std::visit(
      [&](const auto& model) -> SpotModelArrays { return LayOutSpots(model, shape.fibres, carver); },
      shape.model);
  *packed_bytes = carver->end();
  psf.first_column = carver->Take<int32_t>(spots);
  psf.first_row = carver->Take<int32_t>(spots);
  psf.offset_x = carver->Take<double>(spots);
  psf.offset_y = carver->Take<double>(spots);
  psf.row_bins = carver->Take<int32_t>(fibres * shape.ccd_rows * 4);
  psf.meets = carver->Take<int32_t>(fibres * kNeighbours);
  psf.facts = carver->Take<BundleFacts>(shape.bundles());
  psf.spots = carver->Take<double>(spots * shape.spot_pixels());
  return psf;
}

}  // namespace

PsfArrays LayOutPsf(const PsfShape& shape, std::byte* block) {
  Carver carver(block);
  int64_t packed_bytes = 0;
  return LayOut(shape, &carver, &packed_bytes);
}

int64_t PsfBytes(const PsfShape& shape) {
  Carver carver(nullptr);
  int64_t packed_bytes = 0;
  LayOut(shape, &carver, &packed_bytes);
  return carver.bytes();
}

int64_t PackedPsfBytes(const PsfShape& shape) {
  Carver carver(nullptr);
  int64_t packed_bytes = 0;
  LayOut(shape, &carver, &packed_bytes);
  return packed_bytes;
}

}  // namespace spexd::cuda
