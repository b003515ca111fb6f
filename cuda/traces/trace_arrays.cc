#include "cuda/traces/trace_arrays.h"

#include "core/traces/rows/coarse.h"
#include "core/traces/rows/shape_table.h"
#include "core/traces/rows/trace_formula.h"
#include "cuda/memory/carver.h"

namespace spexd::cuda {

TracePsf LayOutPsf(const TraceShape& shape, int x_count, int y_count, std::byte* block, int64_t* bytes) {
  Carver carver(block);
  const int64_t fibres = shape.fibres;
  TracePsf a = {};
  a.x_count = x_count;
  a.y_count = y_count;
  a.x = carver.Take<double>(fibres * x_count);
  a.y = carver.Take<double>(fibres * y_count);
  a.positions = carver.Take<double>(fibres);
  a.shape_series = carver.Take<ShapeSeries>(shape.parameters());
  a.shape_coeff = carver.Take<double>(shape.parameters() * fibres * shape.shape_count);
  a.shapes = carver.Take<float>(fibres * traces::ShapeTable::kNodes * shape.parameters());
  *bytes = carver.bytes();
  return a;
}

TraceArrays LayOutTraces(const TraceShape& shape, std::byte* block, int64_t* bytes) {
  Carver carver(block);
  TraceArrays a = {};
  a.shape = shape;
  const int64_t fibres = shape.fibres, spectrum = fibres * shape.rows, bins = fibres * shape.bins;
  a.x = carver.Take<double>(fibres * shape.x_count);
  a.y = carver.Take<double>(fibres * shape.y_count);
  a.wave = carver.Take<double>(shape.bins);
  a.first_row = carver.Take<int>(fibres);
  a.end_row = carver.Take<int>(fibres);
  a.nodes = carver.Take<double>(fibres * shape.nodes() * traces::kNodeValues);
  a.coarse = carver.Take<double>(fibres * traces::kCoarseOffsets);
  for (float** values : {&a.flux, &a.flux_ivar, &a.moment, &a.moment_ivar, &a.weight, &a.model, &a.slope}) {
    *values = carver.Take<float>(spectrum);
  }
  a.beside = carver.Take<float>(spectrum * shape.degree_y);
  a.bin_row = carver.Take<int>(bins);
  a.bin_centre = carver.Take<float>(bins);
  a.bin_inverse_sigma = carver.Take<float>(bins);
  a.psi = carver.Take<float>(bins * shape.spot_rows());
  a.psi_slope = carver.Take<float>(bins * shape.spot_rows());
  a.chunk_normal = carver.Take<double>(int64_t{shape.chunks()} * shape.reach * shape.bins);
  a.chunk_right = carver.Take<double>(int64_t{shape.chunks()} * shape.bins);
  a.normal = carver.Take<double>(int64_t{shape.bins} * shape.reach);
  a.spectrum = carver.Take<double>(shape.bins);
  a.common_fit = carver.Take<traces::LineFit>(fibres * shape.y_blocks());
  a.common_row = carver.Take<double>(fibres * shape.y_blocks());
  a.throughput = carver.Take<double>(fibres);
  for (double** values : {&a.measured.value, &a.measured.info, &a.measured.u, &a.measured.t, &a.residual2}) {
    *values = carver.Take<double>(shape.measurements);
  }
  a.keys = carver.Take<uint32_t>(shape.measurements);
  a.use = carver.Take<uint8_t>(shape.measurements);
  a.series = carver.Take<SeriesState>(1);
  a.series_sums = carver.Take<double>(int64_t{kSeriesBlocks} * SeriesSums(kMaxSeriesTerms));
  a.histogram = carver.Take<uint32_t>(3 * kKeyCounts);
  *bytes = carver.bytes();
  return a;
}

LineArrays LayOutLines(const TraceShape& shape, int samples, int lines, int reference_samples, int trials,
                       std::byte* block, int64_t* bytes) {
  Carver carver(block);
  LineArrays a;
  const int64_t all = int64_t{shape.fibres} * samples, spectrum = int64_t{shape.fibres} * shape.rows;
  a.samples = samples;
  a.lines = lines;
  a.reference_samples = reference_samples;
  a.trials = trials;
  a.y_count = shape.y_count;
  a.wave = carver.Take<double>(samples);
  a.light = carver.Take<double>(samples);
  a.line = carver.Take<double>(lines);
  a.y = carver.Take<double>(int64_t{shape.fibres} * shape.y_count);
  a.sample_row = carver.Take<int>(all);
  a.sample_centre = carver.Take<float>(all);
  a.model = carver.Take<float>(spectrum);
  a.slope = carver.Take<float>(spectrum);
  a.fit = carver.Take<traces::LineFit>(int64_t{shape.fibres} * lines);
  a.seen = carver.Take<int>(1);
  a.reference_wave = carver.Take<double>(reference_samples);
  a.reference_light = carver.Take<double>(reference_samples);
  a.heights = carver.Take<double>(int64_t{trials + 1} * shape.bins);
  a.roots = carver.Take<double>(int64_t{trials + 1} * shape.bins);
  a.score = carver.Take<double>(trials);
  *bytes = carver.bytes();
  return a;
}

}  // namespace spexd::cuda
