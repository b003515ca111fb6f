// Fiberflats: what each fibre passes of the light at each wavelength, relative to the mean of all fibres.
#ifndef SPEXD_CORE_PRODUCTS_INPUTS_FIBERFLAT_H_
#define SPEXD_CORE_PRODUCTS_INPUTS_FIBERFLAT_H_

#include <cstdint>
#include <stop_token>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/analysis/usable_spectra.h"
#include "core/base/array.h"
#include "core/fits/hdu/source.h"
#include "core/model/frame.h"

namespace spexd {

struct Fiberflat {
  Array<double, 2> values = {};   // [row, bin]
  Array<float, 2> ivar = {};      // of the values, 0 where they mean nothing; empty: they are exact
  std::vector<double> wave = {};  // [bin], Angstrom on the detector; empty: the numbers of the frame's grid
  std::vector<int64_t> fibres = {};  // FIBER of each row, no two alike; empty: the rows are the frame's
  std::string camera = {};           // as the header states it; empty: it does not
  std::string name = {};             // for messages; empty: none

  int64_t bytes() const;
};

// HDUs FIBERFLAT [row, bin] and, where they are there, IVAR and MASK of the same shape, WAVELENGTH, and the
// column FIBER of FIBERMAP; without it, row k is fibre k of the camera. Values under a MASK, or that are not
// finite and positive, have ivar 0. InvalidArgument that names the file, the HDU and what is wrong; Cancelled
// if a stop is requested.
absl::StatusOr<Fiberflat> ReadFiberflat(const Source& source, const std::stop_token& stop = {});

// Divides the frame's spectra by the fiberflat, and adds its variance to theirs. Each fibre takes the row of
// its FIBER. A fiberflat whose rows are numbered from 0 to at most 499 may also count the fibres of the
// frame's spectrograph, of which DESI has 500 each. In a frame with barycentric wavelengths, the value of a
// bin is that at WAVELENGTH / HELIOCOR, interpolated. Bins of which the fiberflat tells nothing have no data
// afterwards, and kMaskBadFiberflat. All this is as in desispec's apply_fiberflat.
//
// InvalidArgument if the wavelengths are not those of the frame (by desispec's tolerance, a part in 100,000),
// or if the fiberflat lacks fibres.
absl::Status ApplyFiberflat(const Fiberflat& fiberflat, const Frame& frame, UsableSpectra* spectra);

}  // namespace spexd

#endif  // SPEXD_CORE_PRODUCTS_INPUTS_FIBERFLAT_H_
