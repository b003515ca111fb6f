// A small library of star templates from a formula, without any input, for trials, examples and tests. The
// templates resemble stars, but none matches a real star: velocities of real stars need a real library.
#ifndef SPEXD_CORE_PRODUCTS_SYNTHETIC_TEMPLATES_H_
#define SPEXD_CORE_PRODUCTS_SYNTHETIC_TEMPLATES_H_

#include "absl/status/statusor.h"
#include "core/analysis/velocity/template_library.h"
#include "core/products/template_file.h"

namespace spexd {

// The wavelengths of frames for which there are lines, Angstrom in vacuum.
inline constexpr double kMinSyntheticWave = 3000, kMaxSyntheticWave = 11000;
// The least step of samples. Lines are wide enough for steps up to 10 km/s; smaller steps than this add
// nothing.
inline constexpr double kMinSyntheticStep = 1;  // km/s

struct SyntheticTemplates {
  double first = 3500, last = 10000;  // range of the frames, Angstrom in vacuum
  double step = 10;                   // step of samples, km/s
  int threads = 1;                    // the result does not depend on it
};

// Makes 45 templates on the grid of TEFF (4000 to 7000 K), LOGG (1 to 5) and FEH (-2 to 0.5), flux per
// Angstrom. Each is a black body with lines of hydrogen, calcium, sodium, magnesium, potassium and iron at
// their wavelengths, and some thousand weak metal lines at random wavelengths, which are always the same. All
// lines depend smoothly on the parameters and are wider than the samples, so the library is band-limited.
// Except for its scale, the spectrum at a wavelength depends neither on the range nor on the step. The
// library extends beyond the frames as far as those of MakeTemplates. InvalidArgument for a range or a step
// beyond the limits above.
absl::StatusOr<TemplateLibrary> MakeSyntheticTemplates(const SyntheticTemplates& request);

// The remarks for the header of the library's file.
TemplateRemarks SyntheticRemarks();

}  // namespace spexd

#endif  // SPEXD_CORE_PRODUCTS_SYNTHETIC_TEMPLATES_H_
