// The definition of each of a job's options: its names, limits and meaning. The checks, the header that goes
// to a server, spex's flags and the Python package are derived from it.
#ifndef SPEXD_CORE_FRAME_JOB_OPTIONS_H_
#define SPEXD_CORE_FRAME_JOB_OPTIONS_H_

#include <optional>
#include <variant>

#include "absl/status/status.h"
#include "core/base/priority.h"
#include "core/frame/job.h"
#include "core/model/psf.h"
#include "core/model/wavelength_grid.h"

namespace spexd {

struct JobOption {
  using Member =
      std::variant<int JobSpec::*, std::optional<int> JobSpec::*, double JobSpec::*,
                   std::optional<double> JobSpec::*, bool JobSpec::*,
                   std::optional<WavelengthGrid> JobSpec::*, TraceAxes JobSpec::*, TraceDegrees JobSpec::*>;

  const char* name;        // name in messages, and keyword in Python
  const char* field;       // field of v1::JobHeader
  const char* flag;        // flag of spex; "" if another flag implies the option
  const char* short_flag;  // short flag of spex; "" if there is none
  Member value;
  const char* help = "";
  double min = 0, max = 1;       // limits of numbers; bools are 0 or 1
  bool negated = false;          // field and flag have the opposite meaning
  bool for_server_only = false;  // has no effect in the user's own process

  // The value as a number; none if it is not set, and for the grid and the degrees.
  std::optional<double> NumberIn(const JobSpec& spec) const;
  // Sets the option. REQUIRES: Check(number) is OK, and the option is a number.
  void SetNumber(double number, JobSpec* spec) const;
  // InvalidArgument, naming the option, the value and the limits, if the number is out of range.
  absl::Status Check(double number) const;
};

// All options, in the order of the documentation. The limits of psferr and regularize keep their squares and
// products far from overflow; no sensible value comes near.
// clang-format off
inline constexpr JobOption kJobOptions[] = {
    {"wavelength", "grid", "--wavelength", "-w", &JobSpec::grid,
     "wmin,wmax,dw in Angstrom; default: the PSF's range at 0.8"},
    {"first_fibre", "first_fibre", "--specmin", "-s", &JobSpec::first_fibre, "First fibre", 0, kMaxFibres},
    {"fibre_count", "fibre_count", "--nspec", "-n", &JobSpec::fibre_count,
     "Number of fibres; default: to the last", 1, kMaxFibres},
    {"regularize", "regularize", "--regularize", "-r", &JobSpec::regularize,
     "Weight of a flux = 0 prior on every bin", 0, 1e6},
    {"bundle_size", "bundle_size", "--bundlesize", "", &JobSpec::bundle_size, "Fibres per bundle", 1, kMaxFibres},
    {"psferr", "psferr", "--psferr", "", &JobSpec::psferr,
     "Fractional PSF model error for chi2pix; default: the PSF's", 0, 1000},
    {"barycentric_correction", "barycentric_correction", "--barycentric-correction", "",
     &JobSpec::barycentric_correction, "Solve on the barycentric grid"},
    {"scores", "no_scores", "--no-scores", "", &JobSpec::scores, "Write no SCORES", 0, 1, /*negated=*/true},
    {"model", "want_model", "", "", &JobSpec::model},
    {"trace_shifts", "trace_shifts", "--trace-shifts", "", &JobSpec::trace_shifts,
     "Measure the shifts of traces in the frame, and extract with moved traces: off, auto, x or xy; auto: x of "
     "a flat, else xy", 0, 3},
    {"trace_degrees", "trace_degrees", "--trace-degrees", "", &JobSpec::trace_degrees,
     "Degrees of the shifts over fibres and wavelength, in x and in y, 0 to 5; default: 2,2,2,1"},
    {"trace_required", "trace_required", "--trace-required", "", &JobSpec::trace_required,
     "Fail if shifts cannot be measured, instead of extracting with the PSF's own traces"},
    {"priority", "priority", "--priority", "", &JobSpec::priority,
     "On a server: -10 to 10, jobs of higher priority go first", -kMaxPriority, kMaxPriority,
     /*negated=*/false, /*for_server_only=*/true},
};
// clang-format on

// Checks options by themselves; PlanJob checks the rest. InvalidArgument, naming the option, its value and
// its limits, for the first option that is out of range, or for an option of trace shifts in a job that
// measures none. `trace_reference`: whether the job has a reference spectrum.
absl::Status CheckJobOptions(const JobSpec& spec, bool trace_reference = false);

}  // namespace spexd

#endif  // SPEXD_CORE_FRAME_JOB_OPTIONS_H_
