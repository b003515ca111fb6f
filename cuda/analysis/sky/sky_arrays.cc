#include "cuda/analysis/sky/sky_arrays.h"

#include <algorithm>

namespace spexd::cuda {
namespace {

SkyFitArrays LayOutFit(int64_t bins, int64_t sky_fibres, Carver* carver) {
  const SkyChunks chunks = ChunksOf(static_cast<int>(bins)), one = OneChunk(static_cast<int>(bins));
  const int64_t columns = std::max(int64_t{chunks.count} * chunks.columns(), int64_t{one.columns()});
  SkyFitArrays fit;
  fit.weights = carver->Take<float>(sky_fibres * bins);
  fit.residuals = carver->Take<float>(sky_fibres * bins);
  fit.medians = carver->Take<float>(sky_fibres);
  fit.is_dropped = carver->Take<int32_t>(sky_fibres);
  fit.normal = carver->Take<double>(kNormalParts * kNormalRows * bins);
  fit.prior = carver->Take<double>(1);
  fit.factor = carver->Take<double>(columns * kNormalRows);
  fit.inverse = carver->Take<double>(bins * kNormalRows);
  fit.sky = carver->Take<double>(bins);
  fit.seams = carver->Take<double>(chunks.count);
  fit.covariance = carver->Take<double>(kBandRows * bins);
  fit.few = carver->Take<int32_t>(bins);
  fit.counts = carver->Take<SkyCounts>(1);
  return fit;
}

}  // namespace

SkyArrays LayOutSky(int fibres, int bins, int sky_fibres, Carver* carver) {
  const int64_t values = int64_t{fibres} * bins;
  SkyArrays arrays;
  arrays.wave = carver->Take<double>(bins);
  arrays.sky_fibre = carver->Take<int32_t>(sky_fibres);
  arrays.throughput = carver->Take<double>(fibres);
  arrays.fit = LayOutFit(bins, sky_fibres, carver);
  SkyModelArrays& model = arrays.model;
  model.model = carver->Take<float>(values);
  model.variance = carver->Take<float>(values);
  model.mean = carver->Take<double>(bins);
  model.peaks = carver->Take<int32_t>(bins);
  model.is_peak = carver->Take<int32_t>(bins);
  model.is_near = carver->Take<int32_t>(bins);
  model.peak_count = carver->Take<int32_t>(1);
  model.shift = carver->Take<double>(bins);
  model.extra = carver->Take<double>(bins);
  model.scales = carver->Take<LineScale>(fibres);
  model.line_edges = carver->Take<int32_t>(int64_t{2} * bins);
  return arrays;
}

}  // namespace spexd::cuda
