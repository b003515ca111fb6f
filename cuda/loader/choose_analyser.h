// Choice of what makes a program's products, by the same flags as its engine.
#ifndef SPEXD_CUDA_LOADER_CHOOSE_ANALYSER_H_
#define SPEXD_CUDA_LOADER_CHOOSE_ANALYSER_H_

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "core/analysis/analyser/analyser.h"
#include "core/extract/engine.h"
#include "cuda/loader/choose_engine.h"

namespace spexd {

struct ChosenAnalyser {
  std::unique_ptr<Analyser> analyser;  // null: processors
  std::string note;                    // why "auto" did not take CUDA, else ""; always to be shown
};

// Only device and devices of `choice` count: products take the first. "cuda", or a device that is named,
// fails if CUDA is not possible (see LoadCudaAnalyser); "auto" then takes processors and says why.
absl::StatusOr<ChosenAnalyser> ChooseAnalyser(const EngineChoice& choice);

// For a program that keeps running: an analyser for all devices of `engine`, each of which it takes up to
// `memory_bytes` of (0: none, processors make products). Processors, and why in the note, if they cannot be
// had; without a note if the engine has no devices.
ChosenAnalyser ChooseAnalyserFor(const Engine& engine, int64_t memory_bytes);

}  // namespace spexd

#endif  // SPEXD_CUDA_LOADER_CHOOSE_ANALYSER_H_
