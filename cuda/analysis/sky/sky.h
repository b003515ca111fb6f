// The sky of a frame on a device: core/analysis/sky for all fibres at once. Spectra are float32; the normal
// equations, their solution, covariances and all decisions are float64. Every sum has a fixed order.
#ifndef SPEXD_CUDA_ANALYSIS_SKY_SKY_H_
#define SPEXD_CUDA_ANALYSIS_SKY_SKY_H_

#include <cuda_runtime_api.h>

#include <cstdint>

#include "core/analysis/sky/sky_constants.h"
#include "core/base/host_device.h"

namespace spexd::cuda {

// The spectra that the sky is fitted to.
struct SkySpectra {
  int fibres = 0, bins = 0;
  const float *flux = nullptr, *ivar = nullptr;  // [fibre, bin], finite; ivar is 0 where there are no data
  const float* resolution = nullptr;             // [fibre, diagonal, bin]
  const double* wave = nullptr;                  // [bin]
  int sky_fibres = 0;
  const int32_t* sky_fibre = nullptr;  // [sky fibre]: sky fibres that have data
};

inline constexpr int kBandRows = 11;    // of A and of its inverse: A[j, j + o]
inline constexpr int kNormalRows = 12;  // the band, and the right-hand side
inline constexpr int kNormalParts = 4;  // each sums a part of the sky fibres

// The chain of bins is cut into chunks that are solved in parallel. Each has a halo on both sides, whose bins
// are discarded. `seams` records whether the halo was wide enough.
struct SkyChunks {
  int kept = 0, halo = 0, count = 0;
  // Returns the columns of a chunk's band; the first kBandRows - 1 are zeros before its first bin.
  SPEXD_HOST_DEVICE int columns() const { return kBandRows - 1 + kept + 2 * halo; }
};
SkyChunks ChunksOf(int bins);
SkyChunks OneChunk(int bins);

struct SkyCounts {
  int32_t rejected;   // bins rejected in this round
  int32_t dropped;    // fibres dropped in this round
  int32_t singular;   // bins whose pivot is not positive
  int32_t bad_seams;  // chunks that differ from their neighbour's halo
};

struct SkyFitArrays {
  float *weights = nullptr, *residuals = nullptr;  // [sky fibre, bin]
  float* medians = nullptr;                        // [sky fibre]: sizes of the median residuals
  int32_t* is_dropped = nullptr;                   // [sky fibre]: whether it has light of its own
  double* normal = nullptr;                        // [part, row, bin]
  double* prior = nullptr;                         // [1]
  double* factor = nullptr;   // [chunk, column, row]: D, L's column below it, the solution's element
  double* inverse = nullptr;  // the same for the inverse's band; used for chunks that exceed shared memory
  double *sky = nullptr, *seams = nullptr;  // [bin]; [chunk]
  double* covariance = nullptr;             // [row, bin]: the band of A^-1
  int32_t* few = nullptr;                   // [bin]: whether it has too few sky values
  SkyCounts* counts = nullptr;
};

struct SkyModelArrays {
  float *model = nullptr, *variance = nullptr;     // [fibre, bin]: R s, and its variance
  double* mean = nullptr;                          // [bin]: mean of the model over some fibres
  int32_t* peaks = nullptr;                        // [bin]: the bins of bright lines, ascending
  int32_t *is_peak = nullptr, *is_near = nullptr;  // [bin]: is a peak; belongs to a line
  int32_t* peak_count = nullptr;                   // [1]
  double* shift = nullptr;        // [bin]: a peak's error of wavelength; < 0: unknown
  double* extra = nullptr;        // [bin]: the systematic variance
  LineScale* scales = nullptr;    // [fibre]
  int32_t* line_edges = nullptr;  // [2, bin]: the continuum beside a line's bin; elsewhere the bin itself
};

struct SkyOutput {
  float *flux = nullptr, *ivar = nullptr;  // [fibre, bin], sky-subtracted; may be those of SkySpectra
  double* throughput = nullptr;            // [fibre]
};

struct SkyArgs {
  SkySpectra spectra;
  SkyFitArrays fit;
};
struct SkyModelArgs {
  SkySpectra spectra;
  SkyFitArrays fit;
  SkyModelArrays model;
};

// Returns the bytes of shared memory for a line's residuals in the sky fibres, and for a fibre's lines.
int64_t SkyShiftBytes(int64_t sky_fibres);
int64_t SkyLineBytes(int64_t bins);

// Allows the kernels the shared memory that they need. To be called once for each device.
cudaError_t ConfigureSky();

// ---- A round of the fit. Weights start as ivar; then the normal equations and the sky, residuals,
// rejection.
cudaError_t BeginSky(const SkyArgs& args, cudaStream_t stream);
cudaError_t SolveSky(const SkyArgs& args, const SkyChunks& chunks, cudaStream_t stream);
// Restarts the counts. `rejection`: sigma.
cudaError_t RejectSky(const SkyArgs& args, double rejection, bool first_round, cudaStream_t stream);

// ---- After the rounds, once: the band of A^-1 from the last factor; model and variance in each fibre.
cudaError_t InvertSky(const SkyArgs& args, const SkyChunks& chunks, cudaStream_t stream);
cudaError_t CarrySky(const SkyModelArgs& args, cudaStream_t stream);

// ---- Bright lines: the variance that they add (0 unless `wanted`), then each fibre's scale (1 unless
// `wanted`), from the model without the bins that have no sky.
cudaError_t FindSystematicVariance(const SkyModelArgs& args, bool wanted, cudaStream_t stream);
cudaError_t FindThroughput(const SkyModelArgs& args, bool wanted, double* throughput, cudaStream_t stream);
cudaError_t SubtractSky(const SkyModelArgs& args, const SkyOutput& output, cudaStream_t stream);

}  // namespace spexd::cuda

#endif  // SPEXD_CUDA_ANALYSIS_SKY_SKY_H_
