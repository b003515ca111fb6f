// Trace shifts: tables of spots' shapes, and where traces cross rows (core/traces/rows/trace_formula.h).
//
// Floor for 500 fibres x 4128 rows: 26 MB of shapes are written, 8 us; 130,000 nodes of 3 series, 0.03 GFLOP
// and 4 MB written: 2 us.
#include "core/model/traces/legendre.h"
#include "core/traces/rows/shape_table.h"
#include "core/traces/rows/trace_formula.h"
#include "cuda/kernels/common/machine.cuh"
#include "cuda/traces/shape.cuh"
#include "cuda/traces/trace_arrays.h"

namespace spexd::cuda {
namespace {

constexpr int kShapeNodes = traces::ShapeTable::kNodes;
constexpr int kThreads = 256;

// Tabulates shapes. Each thread computes one parameter at one node of a fibre.
__global__ void __launch_bounds__(kThreads) ShapeNodes(TraceShape shape, TracePsf a) {
  const int parameters = shape.parameters(), fibre = blockIdx.y;
  const int index = blockIdx.x * kThreads + threadIdx.x;
  if (index >= kShapeNodes * parameters) return;
  const int node = index / parameters, parameter = index % parameters;
  const ShapeSeries series = a.shape_series[parameter];
  double value = 0;
  if (series.count > 0) {
    const double wave = shape.wave_min + (shape.wave_max - shape.wave_min) * node / (kShapeNodes - 1);
    const double t = 2 * (wave - series.wave_min) / (series.wave_max - series.wave_min) - 1;
    const double* coeff =
        a.shape_coeff + (static_cast<int64_t>(parameter) * shape.fibres + fibre) * shape.shape_count;
    value = EvaluateTrace(coeff, series.count, t).value;
  }
  if (parameter < 2) value = value > 1e-3 ? 1 / value : 0;
  a.shapes[static_cast<int64_t>(fibre) * kShapeNodes * parameters + index] = static_cast<float>(value);
}

// Moves the traces and finds their nodes. Each block processes a fibre, each thread some nodes.
__global__ void __launch_bounds__(kThreads) TraceNodes(TraceArrays a, MovingSeries by_x, MovingSeries by_y) {
  __shared__ double row_at[traces::kTraceSamples];
  const int fibre = blockIdx.x;
  double *x = a.x + static_cast<int64_t>(fibre) * a.shape.x_count,
         *y = a.y + static_cast<int64_t>(fibre) * a.shape.y_count;
  const double u = a.psf.positions[fibre];
  MoveTrace(a.psf.x + static_cast<int64_t>(fibre) * a.psf.x_count, a.psf.x_count, by_x, u, a.shape.x_count,
            x);
  MoveTrace(a.psf.y + static_cast<int64_t>(fibre) * a.psf.y_count, a.psf.y_count, by_y, u, a.shape.y_count,
            y);
  __syncthreads();
  for (int k = threadIdx.x; k < traces::kTraceSamples; k += kThreads) {
    row_at[k] = EvaluateLegendre(y, a.shape.y_count, traces::TraceSampleAt(k)).value;
  }
  __syncthreads();
  int wrong = 0;
  for (int k = threadIdx.x + 1; k < traces::kTraceSamples; k += kThreads) {
    wrong |= !(row_at[k] > row_at[k - 1]);
  }
  wrong = __syncthreads_or(wrong);
  traces::RowRange range = {0, 0};
  if (!wrong) range = traces::RowsReached(row_at[0], row_at[traces::kTraceSamples - 1], a.shape.rows);
  if (range.first < range.end) {
    const int last = (range.end - 1) / traces::kNodeRows + 1;
    int sample = 0;
    for (int node = range.first / traces::kNodeRows + threadIdx.x; node <= last; node += kThreads) {
      double* values = a.nodes + (static_cast<int64_t>(fibre) * a.shape.nodes() + node) * traces::kNodeValues;
      wrong |= !traces::FindTraceNode(x, a.shape.x_count, y, a.shape.y_count, row_at, node, &sample, values);
    }
  }
  wrong = __syncthreads_or(wrong);
  if (threadIdx.x != 0) return;
  const bool any = !wrong && range.first < range.end;
  a.first_row[fibre] = any ? range.first : 0;
  a.end_row[fibre] = any ? range.end : 0;
}

}  // namespace

cudaError_t TabulateShapes(const TraceShape& shape, const TracePsf& psf, cudaStream_t stream) {
  const int values = kShapeNodes * shape.parameters();
  return Launch(ShapeNodes, dim3((values + kThreads - 1) / kThreads, shape.fibres), kThreads, 0, stream,
                shape, psf);
}

cudaError_t FindTraceRows(const TraceArrays& arrays, const MovingSeries& x, const MovingSeries& y,
                          cudaStream_t stream) {
  return Launch(TraceNodes, dim3(arrays.shape.fibres), kThreads, 0, stream, arrays, x, y);
}

}  // namespace spexd::cuda
