// Evaluates the spots of a spot model, one fibre and a few bins at a time.
#ifndef SPEXD_CORE_EXTRACT_CPU_SPOTS_EVALUATOR_H_
#define SPEXD_CORE_EXTRACT_CPU_SPOTS_EVALUATOR_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "core/model/spots/gauss_hermite.h"
#include "core/model/spots/sampled.h"

namespace spexd::cpu {

// Number of bins evaluated at a time: few, so that the spots of all fibres stay in the cache for their first
// use.
inline constexpr int kStretch = 16;

// The spots of one fibre in a stretch of bins.
struct SpotStretch {
  int fibre;        // number of the fibre in the PSF
  int first, bins;  // bins of the stretch, at most kStretch
  // [bin of the stretch], see SpotPosition
  const int32_t *first_column, *first_row;
  const double *offset_x, *offset_y;
  double* spots;  // the spot [row, column] of the first bin
  int64_t step;   // distance from a bin's spot to the next
};

class SpotEvaluator {
 public:
  virtual ~SpotEvaluator() = default;

  // Writes the spots, clipped at 0 and scaled to sum 1. Not thread-safe.
  virtual void Evaluate(const SpotStretch& stretch) = 0;
};

// The evaluator of a model for bins of these wavelengths. Model and wavelengths must outlive it.
std::unique_ptr<SpotEvaluator> MakeSpotEvaluator(const GaussHermiteSpots& model,
                                                 const std::vector<double>& wave);
std::unique_ptr<SpotEvaluator> MakeSpotEvaluator(const SampledSpots& model, const std::vector<double>& wave);

// Memory that an evaluator takes for each bin.
int64_t EvaluatorBytesPerBin(const GaussHermiteSpots& model);
inline int64_t EvaluatorBytesPerBin(const SampledSpots&) { return 0; }

}  // namespace spexd::cpu

#endif  // SPEXD_CORE_EXTRACT_CPU_SPOTS_EVALUATOR_H_
