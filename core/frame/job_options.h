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
     "Wavelength grid: first, last and step in Angstrom. Default: the range of the PSF in steps of 0.8"},
    {"first_fibre", "first_fibre", "--specmin", "-s", &JobSpec::first_fibre, "First fibre to extract, counted from 0", 0, kMaxFibres},
    {"fibre_count", "fibre_count", "--nspec", "-n", &JobSpec::fibre_count,
     "Number of fibres to extract. Default: all to the last", 1, kMaxFibres},
    {"regularize", "regularize", "--regularize", "-r", &JobSpec::regularize,
     "Weight of a prior that pulls the flux of every bin to 0. 0: no prior", 0, 1e6},
    {"bundle_size", "bundle_size", "--bundlesize", "", &JobSpec::bundle_size, "Number of fibres per bundle", 1, kMaxFibres},
    {"psferr", "psferr", "--psferr", "", &JobSpec::psferr,
     "Relative error of the PSF model, for chi2pix. Default: the value of the PSF file", 0, 1000},
    {"barycentric_correction", "barycentric_correction", "--barycentric-correction", "",
     &JobSpec::barycentric_correction, "Extract on the barycentric wavelength grid"},
    {"scores", "no_scores", "--no-scores", "", &JobSpec::scores, "Write no HDU SCORES", 0, 1, /*negated=*/true},
    {"model", "want_model", "", "", &JobSpec::model},
    {"trace_shifts", "trace_shifts", "--trace-shifts", "", &JobSpec::trace_shifts,
     "Axes in which to measure the shifts of the frame's traces; the extraction uses the shifted traces. auto: x "
     "for a flat, otherwise xy", 0, 3},
    {"trace_degrees", "trace_degrees", "--trace-degrees", "", &JobSpec::trace_degrees,
     "Degrees of the shifts, 0 to 5: in x over fibres and wavelength, then in y likewise. Default: 2,2,2,1"},
    {"trace_required", "trace_required", "--trace-required", "", &JobSpec::trace_required,
     "Fail if the shifts cannot be measured, instead of extracting with the traces of the PSF"},
    {"priority", "priority", "--priority", "", &JobSpec::priority,
     "Priority on a server, -10 to 10; jobs of higher priority start first", -kMaxPriority, kMaxPriority,
     /*negated=*/false, /*for_server_only=*/true},
};
// clang-format on

// Checks options by themselves; PlanJob checks the rest. InvalidArgument, naming the option, its value and
// its limits, for the first option that is out of range, or for an option of trace shifts in a job that
// measures none. `trace_reference`: whether the job has a reference spectrum.
absl::Status CheckJobOptions(const JobSpec& spec, bool trace_reference = false);

}  // namespace spexd

#endif  // SPEXD_CORE_FRAME_JOB_OPTIONS_H_
