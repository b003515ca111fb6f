// A library's templates at the velocities of a scan, convolved with a frame's mean resolution.
#ifndef SPEXD_CUDA_ANALYSIS_VELOCITY_TEMPLATES_H_
#define SPEXD_CUDA_ANALYSIS_VELOCITY_TEMPLATES_H_

#include <cuda_runtime_api.h>

#include <cstdint>

namespace spexd::cuda {

// The state of the search for one diagonal's median: the known bits of its value, from the highest; its rank
// among the values that share these bits; the number of these values (`no_larger`); the least value that is
// larger.
struct MedianState {
  uint32_t bits, rank;
  uint32_t no_larger;
  uint32_t next;
};
inline constexpr int kMedianBuckets = 2048;

struct ResolutionArgs {
  const float* resolution;  // [fibre, diagonal, bin]
  const int* rows;          // [row_count]: fibres that count
  int row_count, bins, edge;
  uint32_t* buckets;    // [diagonal, kMedianBuckets], work space
  MedianState* states;  // [diagonal], work space
  double* sigma;        // the result: standard deviation of the medians, in bins
};
// Measures the width of the mean resolution, as MeanResolution of core/analysis does.
[[nodiscard]] cudaError_t MeasureResolution(const ResolutionArgs& args, cudaStream_t stream);

struct SmoothArgs {
  const double* flux;  // [template, sample]
  int templates, samples;
  double first, step;    // ln wavelength
  const double* sigma;   // in bins
  double bin;            // Angstrom
  int half;              // samples on either side
  double* weights;       // [2 half + 1, sample], work space
  double* smooth;        // [template, sample], work space
  double* coefficients;  // [template, sample]: of splines through the smoothed templates
};
[[nodiscard]] cudaError_t SmoothTemplates(const SmoothArgs& args, cudaStream_t stream);

struct ShiftArgs {
  const double* coefficients;  // [template, sample]
  int templates, samples;
  double first, step;
  const double* log_wave;  // [bin]
  int bins;
  const double* velocities;  // [velocity], km/s
  int steps;
  float *values, *squares;  // [template, velocity, bin]
};
[[nodiscard]] cudaError_t ShiftTemplates(const ShiftArgs& args, cudaStream_t stream);

}  // namespace spexd::cuda

#endif  // SPEXD_CUDA_ANALYSIS_VELOCITY_TEMPLATES_H_
