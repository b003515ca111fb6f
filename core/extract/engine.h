// The interface of an extraction engine. Through it, core, the server and the command line use CPUs and GPUs.
//
// A PSF and a grid are *prepared* once; the result is immutable and shared by jobs. A job takes an image and
// delivers bundles as they finish. All results are float64 unless float32 is requested. An engine is
// thread-safe.
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

// A PSF on a grid, ready for extraction.
class PreparedPsf {
 public:
  virtual ~PreparedPsf() = default;
  virtual const std::shared_ptr<const Psf>& psf() const = 0;
  virtual const WavelengthGrid& grid() const = 0;
  virtual int bundle_size() const = 0;
  virtual int64_t bytes() const = 0;  // memory held on the engine's device, including the PSF's own tables
  // Whether the grid is finer than the PSF resolves (IsFineGrid), so that the prior has its extra term.
  virtual bool fine_grid_prior() const = 0;
};

// An image that an engine with devices keeps for its next call.
class LoadedImage {
 public:
  virtual ~LoadedImage() = default;
};

// The image of a request: `image` or `planes`, and `coded` in place of either or beside it.
struct RequestImage {
  std::shared_ptr<const Image> image;       // decoded; has the PSF's CCD size
  std::shared_ptr<const CodedImage> coded;  // coded; used if the engine decodes (EngineInfo)
  ImagePlanes planes;                       // arrays of the caller, which must outlive the call
};

// A request to measure trace shifts.
struct TraceRequest : RequestImage {
  std::shared_ptr<const Psf> psf;
  std::shared_ptr<const ReferenceSpectrum> reference;  // null: none
  TraceShiftOptions options;
  int threads = 1;  // threads for engines without devices
  std::stop_token stop;
};

struct MeasuredTraces {
  TraceShifts shifts;
  double seconds = 0;  // time of the measurement, without the wait for a device
  std::shared_ptr<const LoadedImage> image;
};

struct ExtractRequest : RequestImage {
  std::shared_ptr<const PreparedPsf> prepared;
  // The same image as MeasureTraces left it, so that it need not be copied and decoded again; or null.
  std::shared_ptr<const LoadedImage> loaded;
  // If not null, it receives the Image::negative_ivar of a coded image when Extract returns OK.
  int64_t* negative_ivar = nullptr;
  FibreRange fibres;      // need not align with bundles: a bundle is solved whole, then trimmed
  double psferr = 0.01;   // >= 0
  double regularize = 0;  // weight of a flux = 0 prior on every bin; 0 for the default prior
  bool want_model = false;
  // Requests spectra rounded to float32, as files and messages hold them, instead of the float64 arrays.
  // Engines with a device round there and copy half as much.
  bool float32 = false;
  // Requests that the spectra also stay in the device's memory. If not null, it is set when Extract returns
  // OK. The masks are those of the bundles. REQUIRES: float32. Unimplemented for engines without devices.
  std::shared_ptr<DeviceSpectra>* on_device = nullptr;
  // Whether to keep the spectra on the device only if one device has room for job and spectra; else
  // *on_device becomes null. REQUIRES: work on the spectra ends before they are destroyed.
  bool on_device_if_room = false;
  // When a stop is requested, the job ends with Cancelled within 100 ms, also inside a bundle (on devices:
  // before its work is enqueued). Deadlines request it, too (core/base/threads/deadline.h).
  std::stop_token stop;
};

// The image of a request that is not coded.
inline ImagePlanes PlanesOf(const RequestImage& request) {
  return request.image != nullptr ? PlanesOf(*request.image) : request.planes;
}

// The part of the model image that a bundle's own fibres contribute, electrons.
struct ModelWindow {
  int first_column = 0;
  Array<float, 2> pixels;  // [CCD row, column - first_column]
};

// A finished bundle, cut to the fibres asked for. Arrays are [fibre, wave]; resolution is [fibre, diagonal,
// wave]. If the request asks for float32, `spectra` holds the result and the float64 arrays are empty.
struct BundleResult {
  int bundle = 0;       // fibre / bundle size
  FibreRange fibres;    // the fibres of the arrays
  absl::Status status;  // not OK if this bundle failed for a reason of its own; its bins are then NODATA
  // The residual |b - A f| / |b| of the deconvolved flux of all the bundle's fibres, against the exact normal
  // equations, in the norm of diag(A)^-1/2.
  double residual = 0;
  // The largest relative error of |Q 1|^2 = 1^T P 1 and |Q f|^2 = f^T P f over all the bundle's fibres. P is
  // the precision, Q its square root, f the deconvolved flux.
  double root_error = 0;
  Array<double, 2> flux;    // electrons / Angstrom, resolution-convolved
  Array<double, 2> ivar;    // 1 / flux^2
  Array<uint32_t, 2> mask;  // specmask bits without BAD2DFIT
  Array<double, 3> resolution;
  Array<double, 2> chi2pix;
  Array<double, 2> pixmask;  // masked fraction of each spot, 0..1
  Spectra spectra;           // float32 (see core/extract/rounding.h)
  ModelWindow model;         // empty unless requested
};

// A job as far as it is known before any of its data is read.
struct JobOutline {
  const Psf* psf = nullptr;  // only its header values and a few points of its traces are used
  WavelengthGrid grid;       // the grid to solve on
  int bundle_size = 25;
  FibreRange fibres;
  bool want_model = false;
  bool float32 = false;
  std::optional<TraceShiftOptions> trace_shifts;  // none if nothing is measured
};

// The outline of a request. It points into the request's PSF.
inline JobOutline OutlineOf(const ExtractRequest& request) {
  const PreparedPsf& prepared = *request.prepared;
  return {prepared.psf().get(), prepared.grid(), prepared.bundle_size(), request.fibres, request.want_model,
          request.float32,      std::nullopt};
}

// The expected time and memory of a job.
struct JobEstimate {
  // Seconds of MeasureTraces, Prepare and Extract if the job has the engine to itself, on one device or with
  // all threads. 0: unknown.
  double seconds = 0;
  // Memory of the host and of one device (0 if the engine has none) that the engine will take. It works on as
  // much of the job at once as there is room for.
  int64_t host_bytes = 0;
  int64_t device_bytes = 0;
  // The least memory (of the device, if there is one) with which the job can be done: that of its largest
  // bundle alone.
  int64_t min_bytes = 0;
};

// A receiver of bundles in the order in which they finish. It is called from any thread, one call at a time.
// If it returns an error, the job ends with that error.
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
  int64_t resident_bytes = 0;   // memory of prepared PSFs
  int64_t workspace_bytes = 0;  // memory of the workspaces of current jobs
  int running_jobs = 0;
  absl::Status health;  // not OK if the device takes no more jobs
};

struct EngineInfo {
  std::string kind;             // "cpu" or "cuda"
  std::string device;           // such as "AVX-512, 2 threads"
  int threads = 0;              // number of bundles solved at once
  int64_t workspace_bytes = 0;  // the most memory that workspaces may hold at once
  // The most memory that one bundle may take; a job whose min_bytes exceed it is refused. 0: not known.
  int64_t max_bundle_bytes = 0;
  bool decodes = false;      // whether it takes coded images
  bool has_devices = false;  // whether it can leave spectra on a device (ExtractRequest::on_device)
};

class Engine {
 public:
  virtual ~Engine() = default;

  virtual EngineInfo Info() const = 0;

  // Not OK, with the reason, if the engine can run no more jobs. An engine with several devices is OK as long
  // as one of them is.
  virtual absl::Status Health() const { return absl::OkStatus(); }
  virtual std::vector<DeviceStatus> Devices() const { return {}; }

  // Estimates a job. It takes microseconds and no memory that grows with the job. The times of earlier jobs
  // correct it. REQUIRES: CheckPreparation and the fibres' range are OK (core/extract/request_checks.h).
  virtual JobEstimate Estimate(const JobOutline& outline) const { return {}; }

  // Measures trace shifts (core/traces/README.md). Engines of a kind give the same result to the bit each
  // time. A shift that cannot be measured is data: its status is kRefused.
  //
  // InvalidArgument: as CheckTraceInputs (core/traces/stages.h), an image of another size or with damaged
  // coding, or bundles of more fibres than a device takes. ResourceExhausted: a device's memory is too small.
  // Unavailable, Cancelled: as Extract.
  virtual absl::StatusOr<MeasuredTraces> MeasureTraces(const TraceRequest& request) {
    return absl::UnimplementedError("trace shifts: this engine does not measure them");
  }

  // Prepares a PSF on a grid.
  //
  // InvalidArgument: a bad PSF, a grid outside its domain (by more than kDomainMargin) or too fine, or a
  // bundle size < 1. ResourceExhausted: the workspace of one bundle would exceed the engine's limit.
  // Cancelled within 100 ms of a stop request.
  virtual absl::StatusOr<std::shared_ptr<const PreparedPsf>> Prepare(std::shared_ptr<const Psf> psf,
                                                                     const WavelengthGrid& grid,
                                                                     int bundle_size,
                                                                     std::stop_token stop = {}) = 0;

  // Runs a job and returns when it has ended. Several jobs may run at once and share the engine's threads. A
  // bundle's result is the same to the bit for any thread count, selection of fibres and load.
  //
  // InvalidArgument: an image of another size or with damaged coding, fibres outside the PSF, or psferr or
  // regularize negative or not finite. ResourceExhausted: the job needs more memory than a device has.
  // Unavailable: a device failed during the job, which may be retried. Cancelled: a stop was requested
  // (ExtractRequest::stop). The job also ends with any error that the sink returns or throws
  // (core/base/threads/guard.h).
  virtual absl::StatusOr<StageTimes> Extract(const ExtractRequest& request, const BundleSink& sink) = 0;
};

}  // namespace spexd

#endif  // SPEXD_CORE_EXTRACT_ENGINE_H_
