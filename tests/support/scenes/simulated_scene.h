// Scenes of an instrument's true proportions, from the simulator.
#ifndef SPEXD_TESTS_SUPPORT_SCENES_SIMULATED_SCENE_H_
#define SPEXD_TESTS_SUPPORT_SCENES_SIMULATED_SCENE_H_

#include "core/simulate/simulator.h"
#include "tests/support/scenes/engine_runs.h"

namespace spexd::testing {

// The whole grid of camera r.
inline constexpr WavelengthGrid kWholeGrid = {5760, 0.8, 2326};

// A simulated frame with the mask rule applied; must succeed.
Scene SimulateScene(const SimulatorOptions& options);

}  // namespace spexd::testing

#endif  // SPEXD_TESTS_SUPPORT_SCENES_SIMULATED_SCENE_H_
