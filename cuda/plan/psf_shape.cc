#include "cuda/plan/psf_shape.h"

#include <algorithm>
#include <cstring>
#include <vector>

#include "core/plan/grid_plan.h"
#include "cuda/plan/psf_layout.h"

namespace spexd::cuda {
namespace {

std::vector<const LegendreTable*> SeriesOf(const Psf& psf) {
  std::vector<const LegendreTable*> series = {&psf.x, &psf.y, &psf.sigma_x, &psf.sigma_y};
  for (const GaussHermiteTerm& term : psf.terms) series.push_back(&term.amplitude);
  if (!psf.tail_amplitude.empty()) {
    series.insert(series.end(), {&psf.tail_amplitude, &psf.tail_core, &psf.tail_index, &psf.tail_scale_x,
                                 &psf.tail_scale_y});
  }
  return series;
}

}  // namespace

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
  shape.half_x = psf.half_x;
  shape.half_y = psf.half_y;
  shape.degree_x = psf.max_degree_x;
  shape.degree_y = psf.max_degree_y;
  shape.terms = static_cast<int>(psf.terms.size());
  shape.tail = !psf.tail_amplitude.empty();
  for (const LegendreTable* table : SeriesOf(psf)) {
    shape.coefficients = std::max(shape.coefficients, static_cast<int>(table->coeff.shape(1)));
  }
  shape.bundle_size = bundle_size;
  shape.fine_grid = IsFineGrid(grid);
  return shape;
}

int64_t PackedPsfBytes(const PsfShape& shape) { return MakePsfLayout(shape).first_column; }

void PackPsf(const Psf& psf, const PsfShape& shape, void* packed) {
  const PsfLayout layout = MakePsfLayout(shape);
  auto* bytes = static_cast<std::byte*>(packed);
  std::memset(bytes, 0, layout.first_column);
  const std::vector<const LegendreTable*> series = SeriesOf(psf);
  for (size_t s = 0; s < series.size(); ++s) {
    const double domain[2] = {series[s]->wave_min, series[s]->wave_max};
    std::memcpy(bytes + layout.domains + s * sizeof(domain), domain, sizeof(domain));
    const int64_t count = series[s]->coeff.shape(1);
    for (int i = 0; i < shape.fibres; ++i) {
      const int64_t at = (static_cast<int64_t>(i) * shape.series() + s) * shape.coefficients;
      std::memcpy(bytes + layout.coefficients + at * sizeof(double), series[s]->coeff.Row(i).data(),
                  count * sizeof(double));
    }
  }
  for (size_t t = 0; t < psf.terms.size(); ++t) {
    const int32_t degrees[2] = {psf.terms[t].degree_x, psf.terms[t].degree_y};
    std::memcpy(bytes + layout.degrees + t * sizeof(degrees), degrees, sizeof(degrees));
  }
}

PsfLayout MakePsfLayout(const PsfShape& shape) {
  PsfLayout layout;
  int64_t end = 0;
  const auto take = [&end](int64_t bytes) {
    const int64_t at = end;
    end += (bytes + kLayoutAlignment - 1) / kLayoutAlignment * kLayoutAlignment;
    return at;
  };
  const int64_t fibres = shape.fibres, spots = fibres * shape.bins, series = shape.series();
  layout.domains = take(series * 2 * sizeof(double));
  layout.degrees = take(shape.terms * 2 * sizeof(int32_t));
  layout.coefficients = take(fibres * series * shape.coefficients * sizeof(double));
  layout.first_column = take(spots * sizeof(int32_t));
  layout.first_row = take(spots * sizeof(int32_t));
  layout.offset_x = take(spots * sizeof(double));
  layout.offset_y = take(spots * sizeof(double));
  layout.row_bins = take(fibres * shape.ccd_rows * 4 * sizeof(int32_t));
  layout.meets = take(fibres * kNeighbours * sizeof(int32_t));
  layout.facts = take(shape.bundles() * sizeof(BundleFacts));
  layout.spots = take(spots * shape.spot_pixels() * sizeof(double));
  layout.bytes = end;
  return layout;
}

}  // namespace spexd::cuda
