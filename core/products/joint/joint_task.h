// One joint analysis: from the spectra to the files of its products. spex and spexd both run it.
#ifndef SPEXD_CORE_PRODUCTS_JOINT_JOINT_TASK_H_
#define SPEXD_CORE_PRODUCTS_JOINT_JOINT_TASK_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/analysis/analyser/analyser.h"
#include "core/analysis/velocity/template_library.h"
#include "core/analysis/velocity/velocity.h"
#include "core/fits/hdu/source.h"
#include "core/model/target_spectra.h"
#include "core/products/joint/joint_files.h"
#include "core/products/joint/joint_input.h"
#include "core/products/joint/joint_product.h"
#include "core/products/joint/row_selection.h"

namespace spexd {

// What is asked for.
struct JointTask {
  const TemplateLibrary* templates = nullptr;  // of velocities; null: none are asked for
  bool velocities = false, models = false;     // the files of velocities and of their models
  bool lines = false;                          // the file of redshifts
  RowSelection rows;                           // `stars` is set by RunJointTask
  bool select_by_redrock = false;              // rows that MayBeStars
  const Source* redrock = nullptr;             // redrock's file; null: there is none
  bool per_target = false;
  std::optional<int> coefficients;  // of each continuum, 1 to 21
  // Wavelengths without weight for velocities; nullopt: kExcludedOfTargets for files of spectra, none for
  // frames.
  std::optional<std::vector<WavelengthRange>> exclude;
  Analyser* analyser = nullptr;  // who makes them; null: processors
  bool fall_back = false;        // see JointRequest
  int threads = 1;
  std::stop_token stop = {};
};

// Takes each file that is asked for, or why it could not be made, as soon as that is known: redshifts, then
// velocities, then models.
using JointSink = std::function<void(JointProduct product, absl::StatusOr<JointFile> file)>;

// The number of fits, of rows or targets. An error of all files, before the first: what SelectRows,
// GroupRows, ReadRedrock and AnalyseJointly refuse; InvalidArgument for rows to be selected by redrock
// without its file. Cancelled once a stop is requested. `kind`: what the spectra were read from.
absl::StatusOr<int64_t> RunJointTask(const TargetSpectra& spectra, SpectraKind kind, const JointTask& task,
                                     const JointSink& sink);

// What the memory of an analysis depends on. `templates` of `samples` each; 0 without velocities.
struct JointSize {
  std::vector<SpectraOutline> inputs;
  int64_t templates = 0, samples = 0;
  bool models = false;
  int threads = 1;
  bool per_target = false;  // a target may have any number of the rows
};
// An upper estimate of the memory that the spectra take once they are read, with all that SubtractOwnSky,
// JoinInputs and RunJointTask take and make, all files included. The library and the sources are not.
int64_t JointBytes(const JointSize& size);
// An upper estimate of the bytes of all files.
int64_t JointFileBytes(const JointSize& size);

}  // namespace spexd

#endif  // SPEXD_CORE_PRODUCTS_JOINT_JOINT_TASK_H_
