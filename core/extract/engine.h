// The interface of an extraction engine. Through it, core, the server and the command line use CPUs and GPUs.
//
// A PSF and a grid are *prepared* once (immutable, shared by jobs). A job takes an image, and hands out
// bundles as they finish. All is float64 unless float32 is asked for. An engine is safe to use from many
// threads.
#ifndef SPEXD_CORE_EXTRACT_ENGINE_H_
#define SPEXD_CORE_EXTRACT_ENGINE_H_

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <numeric>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/base/array.h"
#include "core/extract/device_spectra.h"
#include "core/extract/stage.h"
#include "core/model/coded_image.h"
#include "core/model/fibre_range.h"
#include "core/model/frame.h"
#include "core/model/image.h"
#include "core/model/psf.h"
#include "core/model/traces/trace_shifts.h"
#include "core/model/wavelength_grid.h"
#include "core/traces/shifts/options.h"
#include "core/traces/shifts/reference.h"

namespace spexd {

// A PSF on a grid, ready to extract with.
class PreparedPsf {
 public:
  virtual ~PreparedPsf() = default;
  virtual const std::shared_ptr<const Psf>& psf() const = 0;
  virtual const WavelengthGrid& grid() const = 0;
  virtual int bundle_size() const = 0;
  virtual int64_t bytes() const = 0;  // memory held on the engine's device, including the PSF's own tables
  // Whether the grid is finer than the PSF resolves (see IsFineGrid), so that the prior has its extra term.
  virtual bool fine_grid_prior() const = 0;
};

// What an engine with devices keeps of an image for its next call.
class LoadedImage {
 public:
  virtual ~LoadedImage() = default;
};

// The image of a request.
struct RequestImage {
  std::shared_ptr<const Image> image;       // has the PSF's CCD size; or
  std::shared_ptr<const CodedImage> coded;  // the same still coded, for engines that decode (EngineInfo),
                                            // which take it where both are given; or
  ImagePlanes planes;                       // the same in the caller's arrays, which outlive the call
};

// A measurement of trace shifts.
struct TraceRequest : RequestImage {
  std::shared_ptr<const Psf> psf;
  std::shared_ptr<const ReferenceSpectrum> reference;  // null: none
  TraceShiftOptions options;
  int threads = 1;  // of engines without devices
  std::stop_token stop;
};

struct MeasuredTraces {
  TraceShifts shifts;
  double seconds = 0;  // of the measurement, without the wait for a device
  std::shared_ptr<const LoadedImage> image;
};

struct ExtractRequest : RequestImage {
  std::shared_ptr<const PreparedPsf> prepared;
  // The same image as MeasureTraces left it, so that it need not be copied and decoded again; or null.
  std::shared_ptr<const LoadedImage> loaded;
  // Where not null: set to the Image::negative_ivar of a coded image when Extract returns OK.
  int64_t* negative_ivar = nullptr;
  FibreRange fibres;      // need not align with bundles: a cut bundle is solved whole, then trimmed
  double psferr = 0.01;   // >= 0
  double regularize = 0;  // weak flux = 0 prior on every bin; 0 for the default prior
  bool want_model = false;
  // Returns spectra rounded to float32, as files and the wire hold them, instead of the float64 arrays.
  // Engines with their own device round there and copy half as much.
  bool float32 = false;
  // Asks that the spectra also stay in the device's memory: set when Extract returns OK. Their mask has what
  // the bundles' masks have. REQUIRES: float32. Unimplemented for engines without devices.
  std::shared_ptr<DeviceSpectra>* on_device = nullptr;
  // Only if one device has room for job and spectra, else null. REQUIRES: work on them ends before they go.
  bool on_device_if_room = false;
  // When requested, the job ends with Cancelled within 100 ms, also inside a bundle (on devices: before its
  // work is enqueued). Deadlines request it too (core/base/threads/deadline.h).
  std::stop_token stop;
};

// The request's image, if it is not coded.
inline ImagePlanes PlanesOf(const RequestImage& request) {
  return request.image != nullptr ? PlanesOf(*request.image) : request.planes;
}

// The part of the model image that a bundle's own fibres contribute, electrons.
struct ModelWindow {
  int first_column = 0;
  Array<float, 2> pixels;  // [CCD row, column - first_column]
};

// A finished bundle, cut to the fibres asked for. Arrays are [fibre, wave]; resolution is [fibre, diagonal,
// wave]. Where the request asks for float32, `spectra` holds the result and the float64 arrays are empty.
struct BundleResult {
  int bundle = 0;       // fibre / bundle size
  FibreRange fibres;    // the fibres below
  absl::Status status;  // not OK: this bundle failed for a reason of its own; its bins are NODATA
  // |b - A f| / |b| of the deconvolved flux of all the bundle's fibres, against the exact normal equations,
  // in the norm of diag(A)^-1/2.
  double residual = 0;
  // Largest relative error of |Q 1|^2 = 1^T P 1 and |Q f|^2 = f^T P f for all the bundle's fibres: P is the
  // precision, Q its square root, f the deconvolved flux.
  double root_error = 0;
  Array<double, 2> flux;    // electrons / Angstrom, resolution-convolved
  Array<double, 2> ivar;    // 1 / flux^2
  Array<uint32_t, 2> mask;  // specmask bits without BAD2DFIT
  Array<double, 3> resolution;
  Array<double, 2> chi2pix;
  Array<double, 2> pixmask;  // masked fraction of each spot, 0..1
  Spectra spectra;           // float32 (see core/extract/rounding.h)
  ModelWindow model;         // empty unless wanted
};

// Description of a job, as far as it is known before any of its data is read.
struct JobOutline {
  const Psf* psf = nullptr;  // only its header values and a few points of its traces are used
  WavelengthGrid grid;       // the grid that is solved on
  int bundle_size = 25;
  FibreRange fibres;
  bool want_model = false;
  bool float32 = false;
  std::optional<TraceShiftOptions> trace_shifts;  // options of the measurement, if there is one
};

// The outline of a request. It points into the request's PSF.
inline JobOutline OutlineOf(const ExtractRequest& request) {
  const PreparedPsf& prepared = *request.prepared;
  return {prepared.psf().get(), prepared.grid(), prepared.bundle_size(), request.fibres, request.want_model,
          request.float32,      std::nullopt};
}

// Expected time and memory of a job.
struct JobEstimate {
  // Seconds of MeasureTraces, Prepare and Extract, with the job alone on the engine: on one device, or with
  // all threads. 0: unknown.
  double seconds = 0;
  // Memory that the engine will take, of the host and of one device (0 if it has none). As much of the job is
  // held at once as there is room for.
  int64_t host_bytes = 0;
  int64_t device_bytes = 0;
  // Minimum memory (of the device, if there is one) without which the job cannot be done: that of its largest
  // bundle alone.
  int64_t min_bytes = 0;
};

// Receives bundles in the order in which they finish, one call at a time, from any thread. If it returns an
// error, the job ends with that error.
using BundleSink = std::function<absl::Status(BundleResult bundle)>;

// CPU (or device) seconds by stage, summed over bundles.
struct StageTimes {
  std::array<double, kStageCount> seconds{};

  double& operator[](Stage stage) { return seconds[static_cast<size_t>(stage)]; }
  double operator[](Stage stage) const { return seconds[static_cast<size_t>(stage)]; }
  double total() const { return std::accumulate(seconds.begin(), seconds.end(), 0.0); }
  StageTimes& operator+=(const StageTimes& other) {
    for (size_t k = 0; k < seconds.size(); ++k) seconds[k] += other.seconds[k];
    return *this;
  }
};

// One device of an engine that has any.
struct DeviceStatus {
  int index = 0;
  std::string name;
  int64_t memory_bytes = 0;     // memory that the engine may use
  int64_t resident_bytes = 0;   // prepared PSFs
  int64_t workspace_bytes = 0;  // workspaces of current jobs
  int running_jobs = 0;
  absl::Status health;  // not OK: it takes no more jobs
};

struct EngineInfo {
  std::string kind;             // "cpu" or "cuda"
  std::string device;           // e.g. "AVX-512, 2 threads"
  int threads = 0;              // bundles solved at once
  int64_t workspace_bytes = 0;  // most memory that workspaces may hold at once
  // Maximum memory of one bundle: a job whose min_bytes exceed this is refused. 0: not known.
  int64_t max_bundle_bytes = 0;
  bool decodes = false;      // takes coded images
  bool has_devices = false;  // can leave spectra on a device (ExtractRequest::on_device)
};

class Engine {
 public:
  virtual ~Engine() = default;

  virtual EngineInfo Info() const = 0;

  // Not OK if the engine can run no more jobs, and why. An engine of several devices is OK while one of them
  // is.
  virtual absl::Status Health() const { return absl::OkStatus(); }
  virtual std::vector<DeviceStatus> Devices() const { return {}; }

  // Takes microseconds and no memory that grows with the job. Corrected by the times of earlier jobs.
  // REQUIRES: CheckPreparation and the fibres' range are OK (core/extract/request_checks.h).
  virtual JobEstimate Estimate(const JobOutline& outline) const { return {}; }

  // Measures trace shifts (core/traces/README.md), which are the same to the bit each time on engines of a
  // kind. A shift that cannot be measured is data: its status is kRefused.
  //
  // InvalidArgument as CheckTraceInputs (core/traces/stages.h), an image of another size or with damaged
  // coding, bundles of more fibres than a device takes. ResourceExhausted: a device's memory is too small.
  // Unavailable, Cancelled: as Extract.
  virtual absl::StatusOr<MeasuredTraces> MeasureTraces(const TraceRequest& request) {
    return absl::UnimplementedError("trace shifts: this engine does not measure them");
  }

  // InvalidArgument: a bad PSF, a grid outside its domain (by more than kDomainMargin) or too fine, a bundle
  // size < 1. ResourceExhausted: the workspace of one bundle would exceed the engine's limit.
  // Cancelled within 100 ms of a stop request.
  virtual absl::StatusOr<std::shared_ptr<const PreparedPsf>> Prepare(std::shared_ptr<const Psf> psf,
                                                                     const WavelengthGrid& grid,
                                                                     int bundle_size,
                                                                     std::stop_token stop = {}) = 0;

  // Runs the job and returns when it ended; jobs may run at once and share the engine's threads.
  // A bundle's result does not depend on the thread count, the fibres asked for or what else runs, to the
  // bit. InvalidArgument: image of another size or with damaged coding, fibres outside the PSF, psferr or
  // regularize negative or not finite. ResourceExhausted: the job needs more of a device's memory than there
  // is. Unavailable: a device failed under the job, which may be tried again. Cancelled: see ExtractRequest;
  // and whatever the sink returned; what it throws ends the job likewise (core/base/threads/guard.h).
  virtual absl::StatusOr<StageTimes> Extract(const ExtractRequest& request, const BundleSink& sink) = 0;
};

}  // namespace spexd

#endif  // SPEXD_CORE_EXTRACT_ENGINE_H_
