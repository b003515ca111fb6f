#include "cuda/plan/psf_shape.h"

#include <algorithm>
#include <cstring>
#include <vector>

#include "core/plan/grid_plan.h"
#include "cuda/plan/psf_arrays.h"

namespace spexd::cuda {
namespace {

std::vector<const LegendreTable*> SeriesOf(const Psf& psf) {
  std::vector<const LegendreTable*> series = {&psf.traces.x, &psf.traces.y, &GaussHermite(psf).core().sigma_x, &GaussHermite(psf).core().sigma_y};
  for (const GaussHermiteTerm& term : GaussHermite(psf).core().terms) series.push_back(&term.amplitude);
  if (!GaussHermite(psf).tail_amplitude.empty()) {
    series.insert(series.end(), {&GaussHermite(psf).tail_amplitude, &GaussHermite(psf).tail_core, &GaussHermite(psf).tail_index, &GaussHermite(psf).tail_scale_x,
                                 &GaussHermite(psf).tail_scale_y});
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
  shape.half_x = psf.stamp().x.middle;
  shape.half_y = psf.stamp().y.middle;
  shape.degree_x = GaussHermite(psf).core().max_degree_x;
  shape.degree_y = GaussHermite(psf).core().max_degree_y;
  shape.terms = static_cast<int>(GaussHermite(psf).core().terms.size());
  shape.tail = !GaussHermite(psf).tail_amplitude.empty();
  for (const LegendreTable* table : SeriesOf(psf)) {
    const int length = static_cast<int>(table->coeff.shape(1));
    shape.coefficients = std::max(shape.coefficients, length);
    if (table != &psf.traces.x && table != &psf.traces.y)
      shape.spot_coefficients = std::max(shape.spot_coefficients, length);
  }
  shape.bundle_size = bundle_size;
  shape.fine_grid = IsFineGrid(grid);
  return shape;
}

void PackPsf(const Psf& psf, const PsfShape& shape, std::byte* packed) {
  const PsfArrays to = LayOutPsf(shape, packed);
  std::memset(packed, 0, PackedPsfBytes(shape));
  const std::vector<const LegendreTable*> series = SeriesOf(psf);
  for (size_t s = 0; s < series.size(); ++s) {
    to.domains[2 * s] = series[s]->wave_min;
    to.domains[2 * s + 1] = series[s]->wave_max;
    for (int i = 0; i < shape.fibres; ++i) {
      const absl::Span<const double> from = series[s]->coeff.Row(i);
      const int64_t at = (static_cast<int64_t>(i) * shape.series() + s) * shape.coefficients;
      std::copy(from.begin(), from.end(), to.coefficients + at);
    }
  }
  for (size_t t = 0; t < GaussHermite(psf).core().terms.size(); ++t) {
    to.degrees[2 * t] = GaussHermite(psf).core().terms[t].degree_x;
    to.degrees[2 * t + 1] = GaussHermite(psf).core().terms[t].degree_y;
  }
}

}  // namespace spexd::cuda
