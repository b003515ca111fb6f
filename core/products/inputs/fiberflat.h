// Fiberflats: the light that each fibre passes at each wavelength, relative to the mean of all fibres.
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
  Array<float, 2> ivar = {};      // ivar of the values, 0 if invalid; empty: the values are exact
  std::vector<double> wave = {};  // [bin], Angstrom on the detector; empty: the frame's wavelengths
  std::vector<int64_t> fibres = {};  // FIBER of each row, without duplicates; empty: the frame's rows
  std::string camera = {};           // CAMERA of the header; empty if there is none
  std::string name = {};             // name for messages; may be empty

  int64_t bytes() const;
};

// Reads a fiberflat: HDUs FIBERFLAT [row, bin] and, if they exist, IVAR and MASK of the same shape,
// WAVELENGTH, and the column FIBER of FIBERMAP. Without that column, row k is fibre k of the camera. Values
// under a MASK, or that are not finite and positive, have ivar 0. InvalidArgument, naming the file, the HDU
// and what is wrong; Cancelled if a stop is requested.
absl::StatusOr<Fiberflat> ReadFiberflat(const Source& source, const std::stop_token& stop = {});

// Divides the frame's spectra by the fiberflat and adds its variance to theirs. Each fibre uses the row of
// its FIBER. A fiberflat whose rows are numbered from 0 to at most 499 may also number the fibres of the
// frame's spectrograph, of which DESI has 500 each. In a frame with barycentric wavelengths, a bin uses the
// value at WAVELENGTH / HELIOCOR, interpolated. Bins without a valid value lose their data and get
// kMaskBadFiberflat. All this is as in desispec's apply_fiberflat.
//
// InvalidArgument if the wavelengths differ from those of the frame (by more than desispec's tolerance, a
// part in 100,000), or if the fiberflat lacks fibres.
absl::Status ApplyFiberflat(const Fiberflat& fiberflat, const Frame& frame, UsableSpectra* spectra);

}  // namespace spexd

#endif  // SPEXD_CORE_PRODUCTS_INPUTS_FIBERFLAT_H_
