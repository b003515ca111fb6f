// Inputs of products for the service's tests: a frame with sky fibres, a fiberflat, templates of stars.
#ifndef SPEXD_TESTS_SERVICE_SUPPORT_PRODUCT_INPUTS_H_
#define SPEXD_TESTS_SERVICE_SUPPORT_PRODUCT_INPUTS_H_

#include <cstdint>
#include <string>

#include "core/extract/engine.h"

namespace spexd::testing {

// Does what WritePreprocFile does; with `sky`, every other fibre is a sky fibre.
void WritePreprocWithSky(const std::string& path, bool sky = true);

// Gives a bundle spectra from which products can be made: a sky with lines in all fibres, stars in the odd
// ones, a narrow resolution, deterministic noise.
void ReshapeToSpectra(BundleResult* bundle);

// Writes a fiberflat that is 1.1 everywhere.
void WriteFiberflat(const std::string& path, int64_t fibres, int64_t bins);

struct TemplateGrid {
  int nodes = 4;                     // temperatures
  double step_kms = 8;               // between samples
  bool hole = false;                 // one node appears twice, another is missing
  double first = 5940, last = 6100;  // Angstrom
};
void WriteTemplates(const std::string& path, const TemplateGrid& grid);

}  // namespace spexd::testing

#endif  // SPEXD_TESTS_SERVICE_SUPPORT_PRODUCT_INPUTS_H_
