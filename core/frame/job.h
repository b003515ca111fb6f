// A job: a user's request, checked and converted to an engine's request. Shared by spex (embedded) and spexd,
// so that both refuse the same inputs with the same words and produce the same bytes.
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

// A user's request. Defaults are the pipeline's; limits, names and meaning are in core/frame/job_options.h.
struct JobSpec {
  std::optional<WavelengthGrid> grid;  // none: the PSF's WAVEMIN to WAVEMAX at 0.8 Angstrom
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
  int priority = 0;             // on a server
  bool keep_on_device = false;  // spectra stay on the engine's device, too (JobRun::TakeDeviceSpectra)

  friend bool operator==(const JobSpec& a, const JobSpec& b) = default;
};

// What a job is planned from: headers, before any pixel is read.
struct JobInput {
  std::string image_name;  // for IN_IMG and messages
  std::string psf_name;    // for IN_PSF
  int image_rows = 0;
  int image_columns = 0;
  std::vector<std::string> image_cards;
  std::optional<RawTable> fibermap;
  std::shared_ptr<const Psf> psf;  // or its outline (ReadPsfOutline)
};

// A checked job.
struct JobPlan {
  WavelengthGrid output_grid;  // written to the file
  WavelengthGrid solve_grid;   // output_grid divided by the barycentric factor
  FibreRange fibres;
  int bundle_size = 25;
  int bundles = 0;  // bundles to be delivered
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
// "r5", or "r" where no spectrograph is named; "" for none.
std::string CameraName(absl::string_view stated);

// Whether these may be one camera, as CameraName gives them. One that states nothing may be any.
bool MayBeOneCamera(const std::string& a, const std::string& b);

// What is to be measured of trace shifts in an image with these header cards: kAuto is kX for the FLAVOR of a
// flat, since the light of continuum lamps tells nothing of shifts in y, else kXY. Others stay.
TraceAxes ResolveTraceAxes(TraceAxes asked, const std::vector<std::string>& image_cards);

// InvalidArgument, naming the field, the value and the limit, for every request that could not be met: an
// image and a PSF whose headers state different cameras or CCD sizes, fibres that the PSF or the fibermap
// does not have, a bad grid, or a barycentric correction without a date or position.
absl::StatusOr<JobPlan> PlanJob(const JobSpec& spec, const JobInput& input);

// How trace shifts are measured. REQUIRES: plan.trace_shifts is not kOff.
TraceShiftOptions TraceOptionsOf(const JobPlan& plan);

// Outline of a planned job, for an engine's estimate. The PSF must outlive it.
JobOutline OutlineOf(const JobPlan& plan, const Psf& psf);

// The engine request of a planned job, but for its image: float32, as frames are.
ExtractRequest MakeExtractRequest(const JobPlan& plan, std::shared_ptr<const PreparedPsf> prepared);

}  // namespace spexd

#endif  // SPEXD_CORE_FRAME_JOB_H_
