#include "cuda/traces/prepared_traces.h"

#include <cuda_runtime_api.h>

#include <algorithm>

#include "core/base/status_macros.h"
#include "core/model/psf_traces/move_psf.h"
#include "cuda/kernels/common/first_error.h"
#include "cuda/traces/copies.h"

namespace spexd::cuda {
PreparedTraces::PreparedTraces(const Psf& psf) : positions_(FibrePositions(psf)) {
  shape_.fibres = psf.fibres;
  shape_.rows = psf.rows;
  shape_.columns = psf.columns;
  shape_.shape_count = static_cast<int>(std::max(psf.sigma_x.coeff.shape(1), psf.sigma_y.coeff.shape(1)));
  for (const GaussHermiteTerm& term : psf.terms) {
    shape_.shape_count = std::max(shape_.shape_count, static_cast<int>(term.amplitude.coeff.shape(1)));
  }
  shape_.degree_x = psf.max_degree_x;
  shape_.degree_y = psf.max_degree_y;
  shape_.half_y = psf.half_y;
  shape_.wave_min = psf.y.wave_min;
  shape_.wave_max = psf.y.wave_max;
}

absl::StatusOr<std::unique_ptr<const PreparedTraces>> PreparedTraces::Make(const TraceDevice& device,
                                                                           const Psf& psf) {
  std::unique_ptr<PreparedTraces> prepared(new PreparedTraces(psf));
  const TraceShape& shape = prepared->shape_;
  TracePsf& arrays = prepared->arrays_;
  const int x_count = static_cast<int>(psf.x.coeff.shape(1)),
            y_count = static_cast<int>(psf.y.coeff.shape(1));
  int64_t bytes = 0;
  LayOutPsf(shape, x_count, y_count, nullptr, &bytes);
  SPEXD_ASSIGN_OR_RETURN(prepared->block_, device.memory->Take(bytes));
  arrays = LayOutPsf(shape, x_count, y_count, prepared->block_.data(), &bytes);

  std::vector<ShapeSeries> series(static_cast<size_t>(shape.parameters()), ShapeSeries{0, 1, 0});
  std::vector<double> coeff(series.size() * shape.fibres * shape.shape_count);
  const auto add = [&](const LegendreTable& table, int parameter) {
    series[parameter] = {table.wave_min, table.wave_max, static_cast<int>(table.coeff.shape(1))};
    for (int64_t i = 0; i < shape.fibres; ++i) {
      std::ranges::copy(table.coeff.Row(i),
                        coeff.begin() + (int64_t{parameter} * shape.fibres + i) * shape.shape_count);
    }
  };
  add(psf.sigma_x, 0);
  add(psf.sigma_y, 1);
  for (const GaussHermiteTerm& term : psf.terms) {
    add(term.amplitude, 2 + term.degree_x * (shape.degree_y + 1) + term.degree_y);
  }
  const cudaStream_t stream = device.stream;
  const cudaError_t enqueued =
      FirstError({Up(psf.x.coeff.data(), psf.x.coeff.size(), arrays.x, stream),
                  Up(psf.y.coeff.data(), psf.y.coeff.size(), arrays.y, stream),
                  Up(prepared->positions_.data(), shape.fibres, arrays.positions, stream),
                  Up(series.data(), shape.parameters(), arrays.shape_series, stream),
                  Up(coeff.data(), static_cast<int64_t>(coeff.size()), arrays.shape_coeff, stream),
                  TabulateShapes(shape, arrays, stream)});
  const cudaError_t ended = cudaStreamSynchronize(stream);  // the block and the vectors are in use until then
  SPEXD_CUDA_RETURN_IF_ERROR(FirstError({enqueued, ended}), device.name, "trace shifts, shapes");
  return prepared;
}

}  // namespace spexd::cuda
