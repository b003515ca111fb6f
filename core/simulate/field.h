// The light of a field whose sources are known: stars from a library of templates, galaxies with emission
// lines, and the night sky in all fibres.
#ifndef SPEXD_CORE_SIMULATE_FIELD_H_
#define SPEXD_CORE_SIMULATE_FIELD_H_

#include <utility>

#include "absl/status/statusor.h"
#include "core/model/true_source.h"
#include "core/model/truth.h"
#include "core/model/wavelength_grid.h"
#include "core/simulate/simulator.h"

namespace spexd {

// Makes the spectra of all fibres and their sources, without target ids. `options` must be complete and have
// a field. InvalidArgument, naming the wavelengths, if the templates do not cover them, or no redshift brings
// a line of emitters there.
absl::StatusOr<std::pair<Truth, TrueSources>> MakeFieldTruth(const SimulatorOptions& options,
                                                             const WavelengthGrid& grid, int threads);

}  // namespace spexd

#endif  // SPEXD_CORE_SIMULATE_FIELD_H_
