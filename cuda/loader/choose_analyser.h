// Choice of the analyser that makes a program's products, by the same flags as its engine.
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
  std::unique_ptr<Analyser> analyser;  // null: processors make the products
  std::string note;                    // why "auto" did not choose CUDA, else ""; must be shown to the user
};

// Uses only `device` and `devices` of `choice`; products use the first device. "cuda", or a named device,
// fails if CUDA is not available (see LoadCudaAnalyser); "auto" then chooses processors and says why in the
// note.
absl::StatusOr<ChosenAnalyser> ChooseAnalyser(const EngineChoice& choice);

// Returns an analyser for all devices of `engine`, for a program that keeps running. It takes up to
// `memory_bytes` of each device; with 0 processors make the products. If the analyser cannot be made, returns
// processors and says why in the note. If the engine has no devices, there is no note.
ChosenAnalyser ChooseAnalyserFor(const Engine& engine, int64_t memory_bytes);

}  // namespace spexd

#endif  // SPEXD_CUDA_LOADER_CHOOSE_ANALYSER_H_
