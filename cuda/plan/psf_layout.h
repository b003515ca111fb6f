// Where the parts of a prepared PSF lie in its block of device memory, in bytes from its start.
#ifndef SPEXD_CUDA_PLAN_PSF_LAYOUT_H_
#define SPEXD_CUDA_PLAN_PSF_LAYOUT_H_

#include <cstdint>

#include "core/model/tolerances.h"
#include "cuda/plan/psf_shape.h"
#include "cuda/plan/tables.h"

namespace spexd::cuda {

inline constexpr int64_t kLayoutAlignment = 256;
// Fibres each way that some group solves together with a fibre, itself between.
inline constexpr int kNeighbourReach = kGroupFibres + 2 * kGuardFibres - 1;
inline constexpr int kNeighbours = 2 * kNeighbourReach + 1;

struct PsfLayout {
  // Packed on the host:
  int64_t domains;       // [series, 2] double: wave_min, wave_max
  int64_t degrees;       // [terms, 2] int32: degree_x, degree_y
  int64_t coefficients;  // [fibre, series, coefficient] double
  // Made on the device:
  int64_t first_column;  // [fibre, bin] int32: a spot's first pixel, may lie off the CCD
  int64_t first_row;
  int64_t offset_x;  // [fibre, bin] double: centre relative to the spot's middle pixel
  int64_t offset_y;
  int64_t row_bins;  // [fibre, CCD row, 4] int32: the bins whose spots cover the row lie in [first, end), and
                     // their first columns in [least, most]
  int64_t meets;     // [fibre, kNeighbours] int32: whether spots share columns with the neighbour's
  int64_t facts;     // [bundle] BundleFacts
  int64_t spots;     // [fibre, bin, row, column] double
  int64_t bytes;
};
PsfLayout MakePsfLayout(const PsfShape& shape);

}  // namespace spexd::cuda

#endif  // SPEXD_CUDA_PLAN_PSF_LAYOUT_H_
