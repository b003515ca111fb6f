// Sizes of a PSF on a grid, which are known before anything is on a device.
#ifndef SPEXD_CUDA_PLAN_PSF_SHAPE_H_
#define SPEXD_CUDA_PLAN_PSF_SHAPE_H_

#include <cstddef>
#include <cstdint>

#include "core/base/host_device.h"
#include "core/model/psf.h"
#include "core/model/wavelength_grid.h"
#include "cuda/plan/spots/series_arrays.h"
#include "cuda/plan/spots/spot_model.h"

namespace spexd::cuda {

struct PsfShape {
  int fibres = 0;
  int bins = 0;  // bins of the padded grid
  int pad = 0;
  double first_wave = 0;  // centre of the padded grid's first bin, Angstrom
  double step = 0;
  int ccd_rows = 0, ccd_columns = 0;
  Stamp stamp;  // pixels of every spot
  SeriesShape traces;
  SpotModelShape model;
  int bundle_size = 0;
  bool fine_grid = false;

  SPEXD_HOST_DEVICE int spot_columns() const { return stamp.x.size; }
  SPEXD_HOST_DEVICE int spot_rows() const { return stamp.y.size; }
  SPEXD_HOST_DEVICE int spot_pixels() const { return spot_columns() * spot_rows(); }
  SPEXD_HOST_DEVICE int bundles() const { return (fibres + bundle_size - 1) / bundle_size; }
  SPEXD_HOST_DEVICE int output_bins() const { return bins - 2 * pad; }
};

// REQUIRES: CheckPsf and CheckGrid are OK, bundle_size >= 1.
PsfShape ShapeOf(const Psf& psf, const WavelengthGrid& grid, int bundle_size);

// The packed PSF, which goes to a device in one copy (see psf_arrays.h): PackedPsfBytes(shape) bytes.
int64_t PackedPsfBytes(const PsfShape& shape);
void PackPsf(const Psf& psf, const PsfShape& shape, std::byte* packed);

}  // namespace spexd::cuda

#endif  // SPEXD_CUDA_PLAN_PSF_SHAPE_H_
