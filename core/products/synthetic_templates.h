// A small library of star templates from a formula, without any input: for trying the programs, examples and
// tests. Its stars are like stars, but no star is like them: velocities of real stars need a real library.
#ifndef SPEXD_CORE_PRODUCTS_SYNTHETIC_TEMPLATES_H_
#define SPEXD_CORE_PRODUCTS_SYNTHETIC_TEMPLATES_H_

#include "absl/status/statusor.h"
#include "core/analysis/velocity/template_library.h"
#include "core/products/template_file.h"

namespace spexd {

// Wavelengths of frames for which there are lines, Angstrom in vacuum.
inline constexpr double kMinSyntheticWave = 3000, kMaxSyntheticWave = 11000;
// Lines are wide enough for samples up to 10 km/s apart; finer ones than this tell nothing more.
inline constexpr double kMinSyntheticStep = 1;  // km/s

struct SyntheticTemplates {
  double first = 3500, last = 10000;  // wavelengths of the frames, Angstrom in vacuum
  double step = 10;                   // of samples, km/s
  int threads = 1;                    // the result does not depend on it
};

// 45 templates on the grid of TEFF (4000 to 7000 K), LOGG (1 to 5) and FEH (-2 to 0.5), flux per Angstrom: a
// black body with lines of hydrogen, calcium, sodium, magnesium, potassium and iron at their wavelengths, and
// some thousand weak lines of metals at random ones, which are always the same. All lines depend smoothly on
// the parameters, and are wider than the samples, so that the library is band-limited. The spectrum at a
// wavelength depends neither on the range nor on the step, but for its scale. The library reaches beyond the
// frames as those of MakeTemplates do. InvalidArgument for a range or a step beyond the limits above.
absl::StatusOr<TemplateLibrary> MakeSyntheticTemplates(const SyntheticTemplates& request);

// What the header of the library's file says of it.
TemplateRemarks SyntheticRemarks();

}  // namespace spexd

#endif  // SPEXD_CORE_PRODUCTS_SYNTHETIC_TEMPLATES_H_
