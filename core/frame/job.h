// A job: a user's request, checked and converted to an engine's request. spex (embedded) and spexd share this
// file, so both refuse the same inputs with the same words and produce the same bytes.
#ifndef SPEXD_CORE_FRAME_JOB_H_
#define SPEXD_CORE_FRAME_JOB_H_

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "core/extract/engine.h"
#include "core/frame/frame_assembler.h"
#include "core/model/frame.h"
#include "core/model/image.h"
#include "core/model/psf.h"
#include "core/model/traces/trace_shifts.h"

namespace spexd {

// A user's request. The defaults are the pipeline's; limits, names and meanings are in
// core/frame/job_options.h.
struct JobSpec {
  std::optional<WavelengthGrid> grid;  // none: the PSF's range, WAVEMIN to WAVEMAX, at 0.8 Angstrom
  int first_fibre = 0;
  std::optional<int> fibre_count;  // none: to the last fibre
  int bundle_size = 25;
  std::optional<double> psferr;  // none: the PSF's
  double regularize = 0;
  bool barycentric_correction = false;
  bool scores = true;
  bool model = false;
  TraceAxes trace_shifts = TraceAxes::kOff;
  TraceDegrees trace_degrees;
  bool trace_required = false;
  int priority = 0;             // takes effect only on a server
  bool keep_on_device = false;  // keep the spectra on the engine's device, too (JobRun::TakeDeviceSpectra)

  friend bool operator==(const JobSpec& a, const JobSpec& b) = default;
};

// The inputs of a plan: headers, before any pixel is read.
struct JobInput {
  std::string image_name;  // name for IN_IMG and messages
  std::string psf_name;    // name for IN_PSF
  int image_rows = 0;
  int image_columns = 0;
  std::vector<std::string> image_cards;
  std::optional<RawTable> fibermap;
  std::shared_ptr<const Psf> psf;  // the PSF, or its outline (ReadPsfOutline)
};

// A checked job.
struct JobPlan {
  WavelengthGrid output_grid;  // the grid in the output file
  WavelengthGrid solve_grid;   // output_grid divided by the barycentric factor
  FibreRange fibres;
  int bundle_size = 25;
  int bundles = 0;  // number of bundles to deliver
  double psferr = 0;
  double regularize = 0;
  bool scores = true;
  bool model = false;
  TraceAxes trace_shifts = TraceAxes::kOff;  // never kAuto: FLAVOR has decided
  TraceDegrees trace_degrees;
  bool trace_required = false;
  FrameOrigin origin;
};

// The camera that a header's CAMERA states, in lower case and without the quotes that specex writes into it:
// "r5", or "r" if no spectrograph is named; "" for none.
std::string CameraName(absl::string_view stated);

// Whether two names from CameraName may be one camera. "" may be any camera.
bool MayBeOneCamera(const std::string& a, const std::string& b);

// The shifts to measure in an image with these header cards. kAuto becomes kX for the FLAVOR of a flat,
// because the light of continuum lamps says nothing about shifts in y, else kXY. Other values are returned
// unchanged.
TraceAxes ResolveTraceAxes(TraceAxes asked, const std::vector<std::string>& image_cards);

// Checks and plans a job. InvalidArgument, naming the field, the value and the limit, for every request that
// cannot be met: an image and a PSF whose headers state different cameras or CCD sizes, fibres that the PSF
// or the fibermap does not have, a bad grid, or a barycentric correction without a date or position.
absl::StatusOr<JobPlan> PlanJob(const JobSpec& spec, const JobInput& input);

// Options for measuring a job's trace shifts. REQUIRES: plan.trace_shifts is not kOff.
TraceShiftOptions TraceOptionsOf(const JobPlan& plan);

// The outline of a planned job, for an engine's estimate. The PSF must outlive it.
JobOutline OutlineOf(const JobPlan& plan, const Psf& psf);

// The engine request of a planned job, without its image. It asks for float32, as frames hold.
ExtractRequest MakeExtractRequest(const JobPlan& plan, std::shared_ptr<const PreparedPsf> prepared);

}  // namespace spexd

#endif  // SPEXD_CORE_FRAME_JOB_H_
