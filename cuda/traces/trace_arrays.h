// The arrays of a measurement of trace shifts on a device, and the launches of its kernels.
#ifndef SPEXD_CUDA_TRACES_TRACE_ARRAYS_H_
#define SPEXD_CUDA_TRACES_TRACE_ARRAYS_H_

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>

#include "core/base/host_device.h"
#include "core/model/spots/stamp.h"
#include "core/traces/light/light_formula.h"
#include "core/traces/light/line_fit.h"
#include "core/traces/rows/trace_formula.h"
#include "core/traces/shifts/series_formula.h"

namespace spexd::cuda {

// Sizes and options, named as in core/traces.
struct TraceShape {
  int fibres = 0, rows = 0, columns = 0;
  int x_count = 0, y_count = 0;  // coefficients of each fibre's moved traces
  int shape_count = 0;           // coefficients of each series of the spots' shape
  int degree_x = 0, degree_y = 0;
  StampAxis stamp_y;                  // rows of each spot
  double wave_min = 0, wave_max = 0;  // Angstrom; domain of the traces
  int bins = 0, reach = 0;            // bins of the common spectrum; bins that overlap with a bin, itself
                                      // included
  int block_rows = 0, y_block_rows = 0;
  int64_t measurements = 0;  // most measurements fitted at once

  SPEXD_HOST_DEVICE int parameters() const { return 2 + (degree_x + 1) * (degree_y + 1); }
  SPEXD_HOST_DEVICE int spot_rows() const { return stamp_y.size; }
  SPEXD_HOST_DEVICE int nodes() const { return rows / traces::kNodeRows + 2; }  // of a trace
  // Returns the number of chunks of fibres in sums of the common spectrum.
  SPEXD_HOST_DEVICE int chunks() const { return (fibres + traces::kLightChunk - 1) / traces::kLightChunk; }
  SPEXD_HOST_DEVICE int y_blocks() const { return rows / y_block_rows; }
};

// A series of the spots' shape, with the domain of its own table.
struct ShapeSeries {
  double wave_min, wave_max;
  int count;
};

// Measured shifts (core/traces/shifts/series.h): [measurement].
struct MeasuredArrays {
  double *value, *info, *u, *t;
};

// Returns the number of sums in a fit of a series: the lower triangle of its normal equations row by row,
// then the right-hand side.
SPEXD_HOST_DEVICE constexpr int SeriesSums(int terms) { return terms * (terms + 3) / 2; }

// A series to be fitted (core/traces/shifts/series.h).
struct SeriesProblem {
  SeriesTerm terms[kMaxSeriesTerms];
  double prior[kMaxSeriesTerms], before[kMaxSeriesTerms];
  double first_floor, block_clip;
  int count;  // of terms
};

// The state of a fit of a series.
struct SeriesState {
  // The result; `sums` include the prior.
  double step[kMaxSeriesTerms], sums[SeriesSums(kMaxSeriesTerms)];
  double floor;
  int round, settled, used, measured;
  // Values passed between kernels.
  SeriesProblem problem;
  double judged, limit;
  int changed, ended;         // whether outliers changed; number of blocks that have ended
  uint32_t high[2], rank[2];  // of the two middle values: upper halves of their keys, and ranks among them
};
// A histogram of halves of keys: a count for each value, then a count for each group of kKeyGroup values.
inline constexpr int kKeyHalf = 1 << 16, kKeyGroup = 256, kKeyCounts = kKeyHalf + kKeyHalf / kKeyGroup;

// Data of a PSF that all its measurements share.
struct TracePsf {
  double *x, *y;              // [fibre, coefficient]: traces of the PSF
  double* positions;          // [fibre]: u
  ShapeSeries* shape_series;  // [parameter]
  double* shape_coeff;        // [parameter, fibre, coefficient]
  float* shapes;              // [fibre, node, parameter]: core/traces/rows/shape_table.h
  int x_count, y_count;
};

// A series that moves traces, with coefficients [a, b].
struct MovingSeries {
  double coeff[kMaxSeriesTerms];
  int rows, columns;
};

struct TraceArrays {
  TraceShape shape;
  // Inputs: the image, in memory of the caller; the PSF's arrays; what the host copies.
  const float *pixels, *ivar;  // [row, column]
  TracePsf psf;
  double* wave;  // [bin]
  // Computed on the device.
  double *x, *y;                                   // [fibre, coefficient]: the moved traces
  int *first_row, *end_row;                        // [fibre]
  double* nodes;                                   // [fibre, node, kNodeValues]
  double* coarse;                                  // [fibre, offset]
  float *flux, *flux_ivar, *moment, *moment_ivar;  // [fibre, row]: row spectra
  float* beside;                                   // [fibre, b - 1, row]: the lines' effect on profiles
  float *weight, *model, *slope;                   // [fibre, row]: of the common light
  int* bin_row;                                    // [fibre, bin]: a bin's first row
  float *bin_centre, *bin_inverse_sigma;           // [fibre, bin]
  float *psi, *psi_slope;                          // [fibre, row of the spot, bin]
  double* chunk_normal;                            // [chunk, bins further on, bin]
  double* chunk_right;                             // [chunk, bin]
  double* normal;                                  // [bin, bins further on]
  double* spectrum;                                // [bin]: the right-hand side, then the solution
  traces::LineFit* common_fit;                     // [fibre, block]
  double* common_row;                              // [fibre, block]: mean row of the light's slope, by its
                                                   // information; -1: none
  double* throughput;                              // [fibre]
  MeasuredArrays measured;
  // The fit of a series.
  SeriesState* series;
  double* series_sums;  // [kSeriesBlocks, sum]
  double* residual2;    // [measurement]
  uint32_t* keys;       // [measurement]
  uint8_t* use;         // [measurement]
  uint32_t* histogram;  // [3, kKeyCounts]: the first histogram is 0 between fits
};

// `block`: null to compute only the size, into *bytes.
TracePsf LayOutPsf(const TraceShape& shape, int x_count, int y_count, std::byte* block, int64_t* bytes);
TraceArrays LayOutTraces(const TraceShape& shape, std::byte* block, int64_t* bytes);

// The arrays for the lines of a reference.
struct LineArrays {
  int samples = 0, lines = 0, half = 0, y_count = 0;
  double *wave, *light;  // [sample]: Angstrom, increasing
  double* line;          // [line]: Angstrom
  double* y;             // [fibre, coefficient]: traces moved by the trial
  int* sample_row;       // [fibre, sample]
  float* sample_centre;
  float *model, *slope;  // [fibre, row]
  traces::LineFit* fit;  // [fibre, line]
  int* seen;             // number of lines that are seen
  // The scan.
  int reference_samples = 0, trials = 0;
  double *reference_wave, *reference_light;  // [reference sample]
  double* heights;                           // [trial + 1, bin]; the last row is the common spectrum
  double* roots;
  double* score;  // [trial]
};
LineArrays LayOutLines(const TraceShape& shape, int samples, int lines, int reference_samples, int trials,
                       std::byte* block, int64_t* bytes);

// ---- Launches, in the order of core/traces/README.md.

// trace_rows.cu
cudaError_t TabulateShapes(const TraceShape& shape, const TracePsf& psf, cudaStream_t stream);
// Moves the PSF's traces, and finds where they cross rows.
cudaError_t FindTraceRows(const TraceArrays& arrays, const MovingSeries& x, const MovingSeries& y,
                          cudaStream_t stream);

// row_pass.cu
struct RowPassOptions {
  float profile_error = 0, row_clip = 0;
  int stride = 1, sweeps = 0, bundle_size = 0;
  bool beside_lines = false;
};
inline constexpr int kMaxPassThreads = 512;  // of a block: the most fibres of a bundle
cudaError_t CollapseTraces(const TraceArrays& arrays, int stride, cudaStream_t stream);
cudaError_t PassOverRows(const TraceArrays& arrays, const RowPassOptions& options, cudaStream_t stream);
// Sets `measured`, [fibre, block].
cudaError_t MeasureXBlocks(const TraceArrays& arrays, int stride, cudaStream_t stream);

// light.cu
cudaError_t FindBins(const TraceArrays& arrays, cudaStream_t stream);
cudaError_t FindWeights(const TraceArrays& arrays, float target_error, cudaStream_t stream);
cudaError_t ClipWeights(const TraceArrays& arrays, cudaStream_t stream);
cudaError_t SumNormal(const TraceArrays& arrays, cudaStream_t stream);
cudaError_t DisperseCommon(const TraceArrays& arrays, cudaStream_t stream);
// Sets `throughput` and `measured`, [fibre, block].
cudaError_t MeasureCommon(const TraceArrays& arrays, cudaStream_t stream);
cudaError_t FindBeside(const TraceArrays& arrays, cudaStream_t stream);

// lines.cu
// `middle`: the fibre whose dispersion turns pixels into wavelengths.
cudaError_t ScanTrials(const TraceArrays& arrays, const LineArrays& lines, int middle, cudaStream_t stream);
// Measures at the PSF's traces moved in y by `trial`. Sets `measured`, [fibre, line], and `seen`.
cudaError_t MeasureLines(const TraceArrays& arrays, const LineArrays& lines, const MovingSeries& trial,
                         double min_line_snr, cudaStream_t stream);

// series.cu
// Prepares a fit to the first `count` of `measured`. Rounds follow until `settled`; further rounds then do
// nothing.
cudaError_t BeginSeries(const TraceArrays& arrays, const SeriesProblem& problem, int64_t count,
                        cudaStream_t stream);
// The three parts of a round: the step; the outliers; the floor, and whether the fit has settled.
cudaError_t StepSeries(const TraceArrays& arrays, int64_t count, int terms, cudaStream_t stream);
cudaError_t JudgeSeries(const TraceArrays& arrays, int64_t count, cudaStream_t stream);
cudaError_t FindSeriesFloor(const TraceArrays& arrays, int64_t count, cudaStream_t stream);
inline constexpr int kSeriesBlocks = 128;  // most blocks that sum

}  // namespace spexd::cuda

#endif  // SPEXD_CUDA_TRACES_TRACE_ARRAYS_H_
