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

// The outline of a source, from its headers, before memory is taken for its arrays.
struct SpectraOutline {
  struct Arm {
    int64_t bins = 0, diagonals = 0;
    bool combined = false;  // whether it combines several cameras, so that AnalyseJointly cuts it into parts
  };
  SpectraKind kind = SpectraKind::kTargets;
  int64_t rows = 0;
  std::vector<Arm> arms;     // a frame has one
  int64_t table_bytes = 0;   // size of FIBERMAP, EXP_FIBERMAP and SCORES, and of the first header
  int64_t decode_bytes = 0;  // upper estimate of the memory that ReadSpectraInput takes, including the result
};
// Reads an outline. InvalidArgument as for KindOfSpectra, or if an HDU of an arm is missing or does not have
// the shape of its X_FLUX.
absl::StatusOr<SpectraOutline> ReadSpectraOutline(const Source& source, const std::stop_token& stop = {});

struct SpectraInput {
  std::string name;  // name of the file, for errors
  std::variant<TargetSpectra, Frame> spectra;
};
absl::StatusOr<SpectraInput> ReadSpectraInput(const Source& source, const Workers& workers = {});

// Divides a frame by `fiberflat` (may be null), finds its sky (Analyse) and subtracts it. Frames without a
// sky (HasSky, or `sky_subtracted`) and spectra of targets are left unchanged. InvalidArgument if there is a
// fiberflat for such an input.
absl::Status SubtractOwnSky(const Fiberflat* fiberflat, bool sky_subtracted, const Workers& workers,
                            SpectraInput* input);

// Joins the spectra of all inputs: one file of targets' spectra, or frames without their sky (JoinFrames).
// InvalidArgument for several files of targets' spectra, or for one together with frames.
absl::StatusOr<TargetSpectra> JoinInputs(std::vector<SpectraInput> inputs);

// Keeps only the arms with these letters (B, r, ..); none: all arms. InvalidArgument, "arms: ..", if there is
// no such arm, or if an arm combines cameras of which not all are named.
absl::Status KeepArms(const std::vector<std::string>& letters, TargetSpectra* spectra);

}  // namespace spexd

#endif  // SPEXD_CORE_PRODUCTS_JOINT_JOINT_INPUT_H_
