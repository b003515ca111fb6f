#include "cuda/traces/prepared_traces.h"

#include <cuda_runtime_api.h>

#include <algorithm>

#include "core/base/status_macros.h"
#include "core/model/psf_traces/move_psf.h"
#include "cuda/kernels/common/first_error.h"
#include "cuda/memory/copies.h"

namespace spexd::cuda {
namespace {

TraceShape ShapeOf(const Psf& psf) {
  const GaussHermiteCore& core = GaussHermite(psf).core();
  TraceShape shape;
  shape.fibres = psf.fibres;
  shape.rows = psf.rows;
  shape.columns = psf.columns;
  shape.shape_count = static_cast<int>(std::max(core.sigma_x.coeff.shape(1), core.sigma_y.coeff.shape(1)));
  for (const GaussHermiteTerm& term : core.terms) {
    shape.shape_count = std::max(shape.shape_count, static_cast<int>(term.amplitude.coeff.shape(1)));
  }
  shape.degree_x = core.max_degree_x;
  shape.degree_y = core.max_degree_y;
  shape.stamp_y = psf.stamp().y;
  shape.wave_min = psf.traces.y.wave_min;
  shape.wave_max = psf.traces.y.wave_max;
  return shape;
}

TracePsf LayOut(const Psf& psf, const TraceShape& shape, std::byte* block, int64_t* bytes) {
  return LayOutPsf(shape, static_cast<int>(psf.traces.x.coeff.shape(1)),
                   static_cast<int>(psf.traces.y.coeff.shape(1)), block, bytes);
}

}  // namespace

int64_t PreparedTraces::Bytes(const Psf& psf) {
  int64_t bytes = 0;
  LayOut(psf, ShapeOf(psf), nullptr, &bytes);
  return bytes;
}

PreparedTraces::PreparedTraces(const Psf& psf, std::byte* block)
    : positions_(FibrePositions(psf)), shape_(ShapeOf(psf)) {
  int64_t bytes = 0;
  arrays_ = LayOut(psf, shape_, block, &bytes);
}

absl::Status PreparedTraces::Fill(const TraceDevice& device, const Psf& psf) const {
  const TraceShape& shape = shape_;
  const TracePsf& arrays = arrays_;
  std::vector<ShapeSeries> series(static_cast<size_t>(shape.parameters()), ShapeSeries{0, 1, 0});
  std::vector<double> coeff(series.size() * shape.fibres * shape.shape_count);
  const auto add = [&](const LegendreTable& table, int parameter) {
    series[parameter] = {table.wave_min, table.wave_max, static_cast<int>(table.coeff.shape(1))};
    for (int64_t i = 0; i < shape.fibres; ++i) {
      std::ranges::copy(table.coeff.Row(i),
                        coeff.begin() + (int64_t{parameter} * shape.fibres + i) * shape.shape_count);
    }
  };
  const GaussHermiteCore& core = GaussHermite(psf).core();
  add(core.sigma_x, 0);
  add(core.sigma_y, 1);
  for (const GaussHermiteTerm& term : core.terms) {
    add(term.amplitude, 2 + term.degree_x * (shape.degree_y + 1) + term.degree_y);
  }
  const cudaStream_t stream = device.stream;
  const cudaError_t enqueued =
      FirstError({CopyUp(psf.traces.x.coeff.data(), psf.traces.x.coeff.size(), arrays.x, stream),
                  CopyUp(psf.traces.y.coeff.data(), psf.traces.y.coeff.size(), arrays.y, stream),
                  CopyUp(positions_.data(), shape.fibres, arrays.positions, stream),
                  CopyUp(series.data(), shape.parameters(), arrays.shape_series, stream),
                  CopyUp(coeff.data(), static_cast<int64_t>(coeff.size()), arrays.shape_coeff, stream),
                  TabulateShapes(shape, arrays, stream)});
  const cudaError_t ended = cudaStreamSynchronize(stream);  // the vectors are in use until then
  SPEXD_CUDA_RETURN_IF_ERROR(FirstError({enqueued, ended}), device.name, "trace shifts, shapes");
  return absl::OkStatus();
}

}  // namespace spexd::cuda
