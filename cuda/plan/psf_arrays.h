// A prepared PSF in its block of device memory.
#ifndef SPEXD_CUDA_PLAN_PSF_ARRAYS_H_
#define SPEXD_CUDA_PLAN_PSF_ARRAYS_H_

#include <cstddef>
#include <cstdint>

#include "cuda/plan/psf_shape.h"
#include "cuda/plan/spots/series_arrays.h"
#include "cuda/plan/spots/spot_model.h"
#include "cuda/plan/tables.h"

namespace spexd::cuda {

// Number of fibres on each side that are checked for common columns. Spots have at most 63 columns.
inline constexpr int kNeighbourReach = 31;
inline constexpr int kNeighbours = 2 * kNeighbourReach + 1;

// Passed to kernels by value.
struct PsfArrays {
  PsfShape shape;
  // Packed on the host:
  SeriesArrays traces;  // x, y
  SpotModelArrays model;
  // Made on the device:
  int32_t* first_column;  // [fibre, bin]: a spot's first pixel, may lie off the CCD
  int32_t* first_row;
  double* offset_x;  // [fibre, bin]: centre relative to the spot's middle pixel
  double* offset_y;
  int32_t* row_bins;   // [fibre, CCD row, 4]: the bins whose spots cover the row lie in [first, end), and
                       // their first columns in [least, most]
  int32_t* meets;      // [fibre, kNeighbours]: whether spots share columns with the neighbour's
  BundleFacts* facts;  // [bundle]
  double* spots;       // [fibre, bin, row, column]
};

// `block` null: computes the size only.
PsfArrays LayOutPsf(const PsfShape& shape, std::byte* block);
int64_t PsfBytes(const PsfShape& shape);

}  // namespace spexd::cuda

#endif  // SPEXD_CUDA_PLAN_PSF_ARRAYS_H_
