// One joint analysis, from the spectra to the files of its products. spex and spexd both run it.
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

// The request for a joint analysis.
struct JointTask {
  const TemplateLibrary* templates = nullptr;  // library for velocities; null if none are requested
  bool velocities = false, models = false;     // whether to make the files of velocities and of their models
  bool lines = false;                          // whether to make the file of redshifts
  RowSelection rows;                           // `stars` is set by RunJointTask
  bool select_by_redrock = false;              // whether to select the rows that MayBeStars
  const Source* redrock = nullptr;             // redrock's file; null if there is none
  bool per_target = false;
  std::optional<int> coefficients;  // number of coefficients of each continuum, 1 to 21
  // Wavelengths without weight for velocities. Nullopt: kExcludedOfTargets for files of spectra, none for
  // frames.
  std::optional<std::vector<WavelengthRange>> exclude;
  Analyser* analyser = nullptr;  // makes the products; null: CPUs make them
  bool fall_back = false;        // as in JointRequest
  int threads = 1;
  std::stop_token stop = {};
};

// Receives each requested file, or its error, as soon as it is known: redshifts, then velocities, then
// models.
using JointSink = std::function<void(JointProduct product, absl::StatusOr<JointFile> file)>;

// Runs a joint analysis. Returns the number of fits, of rows or targets. `kind`: the kind of file from which
// the spectra were read. Errors that concern all files are returned before the first file: those of
// SelectRows, GroupRows, ReadRedrock and AnalyseJointly, and InvalidArgument for a selection by redrock
// without its file. Cancelled once a stop is requested.
absl::StatusOr<int64_t> RunJointTask(const TargetSpectra& spectra, SpectraKind kind, const JointTask& task,
                                     const JointSink& sink);

// The sizes that determine the memory of a joint analysis. `templates` have `samples` samples each; both are
// 0 without velocities.
struct JointSize {
  std::vector<SpectraOutline> inputs;
  int64_t templates = 0, samples = 0;
  bool models = false;
  int threads = 1;
  bool per_target = false;  // whether a target may have any number of rows
};
// An upper estimate of the memory for the spectra after reading, and for all that SubtractOwnSky, JoinInputs
// and RunJointTask take and make, including all files. The library and the sources are not included.
int64_t JointBytes(const JointSize& size);
// An upper estimate of the bytes of all files.
int64_t JointFileBytes(const JointSize& size);

}  // namespace spexd

#endif  // SPEXD_CORE_PRODUCTS_JOINT_JOINT_TASK_H_
