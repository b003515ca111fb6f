#include "tests/support/scenes/simulated_scene.h"

#include <utility>

#include "gtest/gtest.h"

namespace spexd::testing {

Scene SimulateScene(const SimulatorOptions& options) {
  Scene scene;
  auto simulation = Simulate(options);
  EXPECT_TRUE(simulation.ok()) << simulation.status();
  if (!simulation.ok()) return scene;
  scene.psf = std::make_shared<Psf>(std::move(simulation->psf));
  scene.image = std::make_shared<Image>();
  scene.image->pixels = std::move(simulation->preproc.pixels);
  scene.image->ivar = std::move(simulation->preproc.ivar);
  for (int64_t k = 0; k < scene.image->pixels.size(); ++k) {
    float& pixel = scene.image->pixels.flat()[k];
    float& ivar = scene.image->ivar.flat()[k];
    if (!IsUsable(pixel, ivar, simulation->preproc.mask.flat()[k])) pixel = ivar = 0;
  }
  return scene;
}

}  // namespace spexd::testing
