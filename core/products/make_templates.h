// Libraries of star templates, made from folders of spectra.
#ifndef SPEXD_CORE_PRODUCTS_MAKE_TEMPLATES_H_
#define SPEXD_CORE_PRODUCTS_MAKE_TEMPLATES_H_

#include <string>

#include "absl/status/statusor.h"
#include "core/analysis/velocity/template_library.h"
#include "core/products/template_spectra.h"

namespace spexd {

struct TemplateRequest {
  std::string folder;
  SpectraLayout layout;
  double first = 0, last = 0;  // range of the frames, Angstrom in vacuum
  double step = 10;            // step of samples, km/s
  int threads = 1;             // the result does not depend on it
};

// Margins of the library beyond the frames, for the velocities that are scanned and for the filter to the
// frames' bins.
inline constexpr double kTemplateVelocity = 1000;  // km/s
inline constexpr double kTemplateMargin = 13;      // Angstrom

// The samples of a library, uniform in ln wavelength.
struct TemplateGrid {
  double first = 0;  // ln of the first wavelength, Angstrom in vacuum
  double step = 0;
  int samples = 0;

  double Wave(double sample) const;  // Angstrom
};

// The samples for frames from `first` to `last` (Angstrom in vacuum), `step` km/s apart. InvalidArgument for
// a range that does not ascend within 100 to 1e6 Angstrom, or a step outside 0.1 to 10 km/s.
absl::StatusOr<TemplateGrid> MakeTemplateGrid(double first, double last, double step);

// Reads all spectra of the folder and filters each to the samples of the library, so that it is band-limited
// to them. A parameter with the same value in all spectra does not become a parameter of the library.
// InvalidArgument, naming the file and what is wrong: spectra that do not cover the library or are too
// coarse, values that are not finite, different wavelength grids, two spectra with the same parameters, or a
// node of the parameter grid without a spectrum.
absl::StatusOr<TemplateLibrary> MakeTemplates(TemplateRequest request);

}  // namespace spexd

#endif  // SPEXD_CORE_PRODUCTS_MAKE_TEMPLATES_H_
