#include "tests/support/scenes/engine_scenes.h"

#include <algorithm>
#include <utility>

namespace spexd::testing {
namespace {

std::vector<EngineScene> MakeWidenedScenes() {
  return {
      // These spots are so wide across fibres that blocks of several fibres are eliminated at a time.
      {.name = "WidenedByHalf", .options = {.fibres = 6, .rows = 60, .widen = 1.5}, .grid = {6006, 0.8, 30}},
      {.name = "WidenedTwofold", .options = {.fibres = 7, .rows = 60, .widen = 2}, .grid = {6006, 0.8, 30}},
      {.name = "WidenedTwoAndAHalfTimes",
       .options = {.fibres = 7, .rows = 60, .widen = 2.5},
       .grid = {6006, 0.8, 30}},
      {.name = "WidenedAndCrowded",
       .options = {.fibres = 8, .rows = 60, .spacing = 5.2, .widen = 2},
       .grid = {6006, 0.8, 30}},
      {.name = "WidenedWithAHole",
       .options = {.fibres = 5, .rows = 80, .widen = 2},
       .grid = {6006, 0.8, 44},
       .masked = {{30, 25, 10, 18}}},
  };
}

std::vector<EngineScene> MakeDenseScenes() {
  return {
      {.name = "AGoodBundle", .options = {.fibres = 5, .rows = 90}, .grid = {6006, 0.8, 50}},
      {.name = "ATail", .options = {.fibres = 3, .rows = 70, .tail = true}, .grid = {6006, 0.8, 36}},
      {.name = "AHoleWiderThanASpot",
       .options = {.fibres = 4, .rows = 110},
       .grid = {6006, 0.8, 68},
       .masked = {{40, 30, 8, 18}}},
      {.name = "CosmicRaysAndADeadColumn",
       .options = {.fibres = 4, .rows = 80, .seed = 5},
       .grid = {6006, 0.8, 44},
       .masked = {{30, 3, 9, 2}, {50, 2, 16, 4}, {0, 80, 25, 1}}},
      // Whether a bin has data does not depend on the noise of its pixels or of other bins.
      {.name = "ANoisyAmplifier",
       .options = {.fibres = 4, .rows = 80},
       .grid = {6006, 0.8, 44},
       .reweighted = {{{0, 80, 16, 1000}, 3e-5}},
       .limits = {.pull = 1e-8, .sqrt_ivar = 2e-10, .resolution = 1e-10}},
      {.name = "AHoleInANoisyAmplifier",
       .options = {.fibres = 4, .rows = 110},
       .grid = {6006, 0.8, 68},
       .masked = {{40, 30, 14, 12}},
       .reweighted = {{{0, 110, 16, 1000}, 1e-5}},
       .limits = {.pull = 1e-8, .sqrt_ivar = 2e-10, .resolution = 1e-10}},
      {.name = "ABrightStarOnAQuietCcd",
       .options = {.fibres = 4, .rows = 80},
       .grid = {6006, 0.8, 44},
       .reweighted = {{{0, 80, 12, 7}, 1e-6}}},
      // The bins that this pixel touches have a signal of 20,000 sigma, of which rounding is 1e-8.
      {.name = "OnePixelOfAbsurdIvar",
       .options = {.fibres = 4, .rows = 80},
       .grid = {6006, 0.8, 44},
       .reweighted = {{{40, 1, 16, 1}, 1e8}},
       .limits = {.pull = 3e-7, .sqrt_ivar = 5e-10, .resolution = 2e-10}},
      {.name = "OnePixelOfAbsurdIvarBesideAHole",
       .options = {.fibres = 4, .rows = 110},
       .grid = {6006, 0.8, 68},
       .masked = {{40, 30, 8, 18}},
       .reweighted = {{{39, 1, 16, 1}, 1e8}},
       .limits = {.pull = 1e-3, .sqrt_ivar = 2e-8, .resolution = 3e-9}},
      {.name = "BothEndsOfTheCcd", .options = {.fibres = 2, .rows = 60}, .grid = {5998.4, 0.8, 49}},
      {.name = "Regularisation",
       .options = {.fibres = 2, .rows = 60},
       .grid = {6006, 0.8, 30},
       .regularize = 0.02},
      {.name = "OneFibre", .options = {.fibres = 1, .rows = 80}, .grid = {6006, 0.8, 44}},
      {.name = "CoarseBins", .options = {.fibres = 3, .rows = 160}, .grid = {6010, 2.5, 30}},
      // Finer grids are ill-conditioned: the smallest eigenvalues are at most 1e-8 of the largest, so the
      // rounding of a spot's last digit matters. Dense algebra in float64 (the oracle with Real = double)
      // differs from extended precision at 0.4 Angstrom by 2e-5 sigma.
      {.name = "FourTenths",
       .options = {.fibres = 2, .rows = 60},
       .grid = {6008, 0.4, 50},
       .limits = {.pull = 1e-6, .sqrt_ivar = 1e-8, .resolution = 1e-8}},
      {.name = "ThreeTenths",
       .options = {.fibres = 2, .rows = 44},
       .grid = {6008, 0.3, 36},
       .limits = {.pull = 1e-2, .sqrt_ivar = 1e-6, .resolution = 1e-5}},
      {.name = "OneTenth",
       .options = {.fibres = 2, .rows = 44},
       .grid = {6010, 0.1, 20},
       .limits = {.pull = 1e-2, .sqrt_ivar = 1e-6, .resolution = 1e-5}},
  };
}

// Returns scenes of all spot models except a single Gauss-Hermite core.
std::vector<EngineScene> MakeSpotScenes() {
  // The elements of a fibre's precision that kBandCut removes affect single bins of sampled spots. With a cut
  // of 1e-13 in its place their pulls are below 1e-10.
  constexpr ResultLimits kSampled = {.pull = 2e-8, .sqrt_ivar = 2e-10, .resolution = 1e-10};
  std::vector<EngineScene> scenes;
  for (const auto& [spots, name] :
       {std::pair{SceneSpots::kTwoCores, "TwoCores"}, std::pair{SceneSpots::kImageGrid, "AGridOfImages"},
        std::pair{SceneSpots::kOneImage, "OneImage"}, std::pair{SceneSpots::kPolynomials, "Polynomials"}}) {
    scenes.push_back(
        {.name = name, .options = {.fibres = 4, .rows = 80, .spots = spots}, .grid = {6006, 0.8, 44}});
    scenes.push_back({.name = std::string(name) + "WithAHole",
                      .options = {.fibres = 4, .rows = 110, .spots = spots},
                      .grid = {6006, 0.8, 68},
                      .masked = {{40, 30, 8, 18}, {0, 110, 33, 1}}});
    scenes.push_back({.name = std::string(name) + "OffBothEnds",
                      .options = {.fibres = 2, .rows = 60, .spots = spots},
                      .grid = {5998.4, 0.8, 49}});
    if (spots == SceneSpots::kTwoCores) continue;
    for (size_t k = scenes.size() - 3; k < scenes.size(); ++k) scenes[k].limits = kSampled;
  }
  return scenes;
}

std::vector<EngineScene> MakeAllScenes() {
  std::vector<EngineScene> scenes = DenseScenes();
  for (EngineScene& scene : std::vector<EngineScene>{
           {.name = "AGridOffBothEnds", .options = {.fibres = 2, .rows = 60}, .grid = {5998.1, 0.8, 50}},
           {.name = "RowsMissingAtBothEnds",
           .options = {.fibres = 3, .rows = 60},
           .grid = {5998.4, 0.8, 49},
           .masked = {{0, 12, 0, 1000}, {48, 12, 0, 1000}}},
           {.name = "ADeadFibre",
           .options = {.fibres = 3, .rows = 70, .spacing = 20},
           .grid = {6006, 0.8, 40},
           .masked = {{0, 70, 20, 21}}},
           {.name = "AMaskedImage",
           .options = {.fibres = 7, .rows = 60, .bundle_size = 5},
           .grid = {6006, 0.8, 30},
           .masked = {{0, 1000, 0, 1000}},
           .bundle_size = 5},
           {.name = "OneMaskedBundleOfSeveral",
           .options = {.fibres = 6, .rows = 60, .bundle_size = 3},
           .grid = {6006, 0.8, 30},
           .masked = {{0, 1000, 0, 35}},
           .bundle_size = 3},
           {.name = "AGridOfOneBin", .options = {.fibres = 2, .rows = 70}, .grid = {6020, 0.8, 1}},
           {.name = "ASpotOnTheLastUsableRow",
           .options = {.fibres = 2, .rows = 70},
           .grid = {6006, 0.8, 40},
           .masked = {{35, 35, 0, 1000}}},
           {.name = "WorthlessPixelsBesideAMask",
           .options = {.fibres = 3, .rows = 90, .seed = 3},
           .grid = {6006, 0.8, 50},
           .masked = {{40, 12, 6, 12}},
           .reweighted = {{{38, 2, 6, 12}, 1e-12, 1e8f}, {{60, 3, 15, 9}, 1e-12, 1e8f}}},
           {.name = "TwoBundlesOfManyFibres",
           .options = {.fibres = 19, .rows = 90, .bundle_size = 12, .tail = true, .seed = 9},
           .grid = {6006, 0.8, 50},
           .masked = {{40, 25, 60, 18}, {0, 90, 30, 1}},
           .bundle_size = 12},
           {.name = "ManyBins",
           .options = {.fibres = 6, .rows = 500, .seed = 11},
           .grid = {6006, 0.8, 360},
           .masked = {{120, 60, 12, 18}, {0, 500, 33, 1}, {300, 14, 3, 9}, {410, 2, 20, 7}}},
           {.name = "BundlesOfOneFibre",
           .options = {.fibres = 4, .rows = 60, .bundle_size = 1},
           .grid = {6006, 0.8, 30},
           .bundle_size = 1},
           {.name = "ABundleOfFiftyFibres",
           .options = {.fibres = 50, .rows = 60, .bundle_size = 50},
           .grid = {6006, 0.8, 30},
           .masked = {{20, 20, 100, 18}}},
           {.name = "SpotsOfMoreColumnsThanAWarp",
           .options = {.fibres = 3, .rows = 70, .half_columns = 20},
           .grid = {6006, 0.8, 40},
           .masked = {{30, 9, 8, 12}}},
           {.name = "VeryCoarseBins", .options = {.fibres = 3, .rows = 240}, .grid = {6012, 6, 20}},
           {.name = "RatherCoarseBins", .options = {.fibres = 3, .rows = 160}, .grid = {6010, 1.7, 44}},
           {.name = "TwelveFibresInFourTenths",
           .options = {.fibres = 12, .rows = 56, .seed = 13},
           .grid = {6008, 0.4, 44},
           .limits = {.pull = 1e-3, .sqrt_ivar = 1e-4, .resolution = 1e-4}},
           {.name = "TwelveFibresInThreeTenths",
           .options = {.fibres = 12, .rows = 56, .seed = 14},
           .grid = {6008, 0.3, 50},
           .limits = {.pull = 1e-3, .sqrt_ivar = 1e-4, .resolution = 1e-4}},
           {.name = "ManyFineBins",
           .options = {.fibres = 3, .rows = 200, .seed = 12},
           .grid = {6006, 0.4, 260},
           .masked = {{90, 20, 8, 9}},
           .limits = {.pull = 1e-4, .sqrt_ivar = 3e-5, .resolution = 1e-5}},
       }) {
    scenes.push_back(std::move(scene));
  }
  return scenes;
}

}  // namespace

RunOptions EngineScene::run() const {
  return {.grid = grid, .bundle_size = bundle_size, .regularize = regularize, .want_model = true};
}

Scene EngineScene::Make() const {
  Scene scene = MakeScene(options);
  for (const PixelRectangle& r : masked)
    MaskPixels(r.first_row, r.rows, r.first_column, r.columns, scene.image.get());
  for (const auto& [r, factor, value] : reweighted) {
    for (int row = r.first_row; row < std::min(r.first_row + r.rows, scene.image->rows()); ++row) {
      for (int column = r.first_column; column < std::min(r.first_column + r.columns, scene.image->columns());
           ++column) {
        float& pixel = scene.image->pixels(row, column);
        pixel = value.value_or(pixel);
        scene.image->ivar(row, column) *= static_cast<float>(factor);
      }
    }
  }
  return scene;
}

const std::vector<EngineScene>& DenseScenes() {
  static const std::vector<EngineScene> scenes = [] {
    std::vector<EngineScene> made = MakeDenseScenes();
    for (EngineScene& scene : MakeWidenedScenes()) made.push_back(std::move(scene));
    for (EngineScene& scene : MakeSpotScenes()) made.push_back(std::move(scene));
    return made;
  }();
  return scenes;
}

const std::vector<EngineScene>& AllScenes() {
  static const std::vector<EngineScene> scenes = MakeAllScenes();
  return scenes;
}

}  // namespace spexd::testing
