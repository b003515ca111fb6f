// Scenes from the simulator, with the true proportions of an instrument.
#ifndef SPEXD_TESTS_SUPPORT_SCENES_SIMULATED_SCENE_H_
#define SPEXD_TESTS_SUPPORT_SCENES_SIMULATED_SCENE_H_

#include "core/simulate/simulator.h"
#include "tests/support/scenes/engine_runs.h"

namespace spexd::testing {

// The full wavelength grid of camera r.
inline constexpr WavelengthGrid kWholeGrid = {5760, 0.8, 2326};

// Returns a simulated frame with the mask rule applied. Must succeed.
Scene SimulateScene(const SimulatorOptions& options);

}  // namespace spexd::testing

#endif  // SPEXD_TESTS_SUPPORT_SCENES_SIMULATED_SCENE_H_
