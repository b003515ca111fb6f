// The sources of a joint analysis: a file of targets' spectra, or the frames of an exposure's cameras.
#ifndef SPEXD_CORE_PRODUCTS_JOINT_JOINT_INPUT_H_
#define SPEXD_CORE_PRODUCTS_JOINT_JOINT_INPUT_H_

#include <cstdint>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/base/threads/parallel.h"
#include "core/fits/hdu/source.h"
#include "core/fits/readers.h"
#include "core/model/frame.h"
#include "core/model/target_spectra.h"
#include "core/products/inputs/fiberflat.h"

namespace spexd {

// What the headers of a source tell before memory is taken for its arrays.
struct SpectraOutline {
  struct Arm {
    int64_t bins = 0, diagonals = 0;
    bool combined = false;  // of several cameras, which AnalyseJointly cuts into parts
  };
  SpectraKind kind = SpectraKind::kTargets;
  int64_t rows = 0;
  std::vector<Arm> arms;     // of a frame one
  int64_t table_bytes = 0;   // of FIBERMAP, EXP_FIBERMAP and SCORES, and of the first header
  int64_t decode_bytes = 0;  // an upper estimate of what ReadSpectraInput takes, the result included
};
// InvalidArgument as KindOfSpectra, or if an HDU of an arm is missing or has not the shape of its X_FLUX.
absl::StatusOr<SpectraOutline> ReadSpectraOutline(const Source& source, const std::stop_token& stop = {});

struct SpectraInput {
  std::string name;  // of the file, for errors
  std::variant<TargetSpectra, Frame> spectra;
};
absl::StatusOr<SpectraInput> ReadSpectraInput(const Source& source, const Workers& workers = {});

// A frame less its own sky, which it finds (Analyse) after the frame is divided by `fiberflat` (may be null).
// Frames without a sky (HasSky, or `sky_subtracted`) stay as they are. InvalidArgument: a fiberflat for a
// frame without a sky, or for spectra of targets, which stay as they are too.
absl::Status SubtractOwnSky(const Fiberflat* fiberflat, bool sky_subtracted, const Workers& workers,
                            SpectraInput* input);

// Spectra of all inputs: one file of targets' spectra, or frames without their sky (see JoinFrames).
// InvalidArgument for several files of targets' spectra, or such a file beside frames.
absl::StatusOr<TargetSpectra> JoinInputs(std::vector<SpectraInput> inputs);

// Leaves the arms whose letters are among these (B, r, ..); none: all. InvalidArgument, "arms: ..": there is
// no such arm, or one is of several cameras of which not all are named.
absl::Status KeepArms(const std::vector<std::string>& letters, TargetSpectra* spectra);

}  // namespace spexd

#endif  // SPEXD_CORE_PRODUCTS_JOINT_JOINT_INPUT_H_
