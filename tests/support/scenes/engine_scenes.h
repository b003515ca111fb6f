// The scenes on which engines are compared: difficult cases of extraction, each with few fibres and bins.
#ifndef SPEXD_TESTS_SUPPORT_SCENES_ENGINE_SCENES_H_
#define SPEXD_TESTS_SUPPORT_SCENES_ENGINE_SCENES_H_

#include <optional>
#include <ostream>
#include <string>
#include <vector>

#include "tests/support/scenes/engine_runs.h"

namespace spexd::testing {

struct PixelRectangle {
  int first_row, rows, first_column, columns;
};
// Pixels whose ivar is multiplied by `factor`. If `value` is set, it replaces all of their values.
struct Reweighted {
  PixelRectangle pixels;
  double factor;
  std::optional<float> value = {};
};

struct EngineScene {
  std::string name;
  SceneOptions options;
  WavelengthGrid grid;
  std::vector<PixelRectangle> masked = {};
  std::vector<Reweighted> reweighted = {};
  double regularize = 0;
  int bundle_size = 0;  // 0: all fibres in one bundle
  // Allowed difference between float64 results and dense algebra in extended precision.
  ResultLimits limits = {.pull = 5e-9, .sqrt_ivar = 2e-10, .resolution = 1e-10};

  // Returns whether rounding, not the method, limits the agreement of engines, because of narrow bins or very
  // different weights.
  bool ill_conditioned() const { return limits.pull > 1e-7; }
  RunOptions run() const;
  Scene Make() const;
};

inline std::ostream& operator<<(std::ostream& out, const EngineScene& scene) { return out << scene.name; }

// Returns the scenes of one bundle that are small enough for dense algebra.
const std::vector<EngineScene>& DenseScenes();
// Returns the dense scenes and others: scenes without data, with several bundles, with many fibres and bins.
const std::vector<EngineScene>& AllScenes();

}  // namespace spexd::testing

#endif  // SPEXD_TESTS_SUPPORT_SCENES_ENGINE_SCENES_H_
