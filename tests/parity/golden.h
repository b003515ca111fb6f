// The golden results, which define what is correct for a whole bundle of the real PSF
// (tests/parity/README.md).
#ifndef SPEXD_TESTS_PARITY_GOLDEN_H_
#define SPEXD_TESTS_PARITY_GOLDEN_H_

#include <string>

#include "core/base/array.h"
#include "core/model/wavelength_grid.h"
#include "tests/support/scenes/engine_runs.h"

namespace spexd::testing {

inline constexpr char kGoldenPsf[] = "/psf-r0-00051060.fits";
inline constexpr char kGoldenPreproc[] = "/preproc-r0-00051060.fits";
inline constexpr char kGoldenTruth[] = "/truth-r0-00051060.fits";
inline constexpr char kGoldenGrid[] = "5760,7620,0.8";
inline constexpr int kGoldenFibres = 25;

// Returns the PSF and the frame of the goldens' folder, which must exist.
Scene ReadGoldenScene(const std::string& folder);

// Spectra of one bundle as doubles; arrays are [fibre, bin], resolution [fibre, diagonal, bin].
struct BundleArrays {
  Array<double, 2> flux, ivar, mask;
  Array<double, 3> resolution;
  Array<uint8_t, 2> beside;  // 1 beside unusable pixels, where bins are not compared; empty: all are compared
};

BundleArrays ReadBundle(const std::string& path);

// Selects fibres and bins; keeps only NODATA of the masks.
BundleArrays CutBundle(const BundleArrays& bundle, const FibreRange& fibres, int first_bin, int bins);

// The differences of two bundles in bins whose MASK is 0 in both and which are not `beside` in the result.
struct Difference {
  int64_t bins = 0;
  int64_t masks = 0;  // number of bins whose masks differ
  double pull = 0;    // largest |difference of flux| sqrt(ivar)
  double sqrt_ivar = 0;
  double resolution = 0;
  double within_hundredth = 0;  // fraction of bins with a pull below 0.01
  double within_twentieth = 0;  // fraction of bins with a pull below 0.05
  double rounding = 0;          // the largest signal-to-noise ratio times float32's rounding
};

// Compares masks without BAD2DFIT, which needs a whole frame.
Difference Compare(const BundleArrays& result, const BundleArrays& expected);

}  // namespace spexd::testing

#endif  // SPEXD_TESTS_PARITY_GOLDEN_H_
