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
#include "core/extract/engine.h"
#include "core/frame/frame_assembler.h"
#include "core/model/frame.h"
#include "core/model/image.h"
#include "core/model/psf.h"

namespace spexd {

// A user's request. Defaults are the pipeline's.
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
  bool keep_on_device = false;     // spectra stay on the engine's device, too (JobRun::TakeDeviceSpectra)
  bool camera_must_match = false;  // else an image of another camera than the PSF's is a warning
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
  FrameOrigin origin;
  std::vector<std::string> warnings;  // for the summary: inputs that do not seem to belong together
};

// InvalidArgument, naming the field, the value and the limit, for every request that could not be met: image
// and PSF of different CCD sizes, fibres that the PSF or the fibermap does not have, a bad grid, a
// barycentric correction without a date or position, and, if cameras must match, an image and a PSF of
// different ones.
absl::StatusOr<JobPlan> PlanJob(const JobSpec& spec, const JobInput& input);

// Outline of a planned job, for an engine's estimate. The PSF must outlive it.
JobOutline OutlineOf(const JobPlan& plan, const Psf& psf);

// The engine request of a planned job, but for its image: float32, as frames are.
ExtractRequest MakeExtractRequest(const JobPlan& plan, std::shared_ptr<const PreparedPsf> prepared);

}  // namespace spexd

#endif  // SPEXD_CORE_FRAME_JOB_H_
