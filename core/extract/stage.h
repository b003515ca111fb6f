// The stages of an extraction, with one name for files, metrics, summaries and benchmarks.
#ifndef SPEXD_CORE_EXTRACT_STAGE_H_
#define SPEXD_CORE_EXTRACT_STAGE_H_

#include <array>
#include <cstddef>

namespace spexd {

enum class Stage {
  kSpots,       // PSF spots of a bundle
  kNormal,      // normal equations
  kEliminate,   // each fibre's precision, after eliminating its neighbours from both sides
  kSolve,       // flux, refined with the exact matrix
  kResolution,  // square root: resolution, ivar and reported flux
  kModel,       // model image, chi2, masks
};

inline constexpr size_t kStageCount = 6;
inline constexpr std::array<Stage, kStageCount> kAllStages = {
    Stage::kSpots, Stage::kNormal, Stage::kEliminate, Stage::kSolve, Stage::kResolution, Stage::kModel};

constexpr const char* StageName(Stage stage) {
  constexpr std::array<const char*, kStageCount> names = {"spots", "normal",     "eliminate",
                                                          "solve", "resolution", "model"};
  return names[static_cast<size_t>(stage)];
}

}  // namespace spexd

#endif  // SPEXD_CORE_EXTRACT_STAGE_H_
