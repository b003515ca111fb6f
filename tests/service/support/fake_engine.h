// An engine without arithmetic: deterministic arrays, a gate that holds it, and failures on demand.
#ifndef SPEXD_TESTS_SERVICE_SUPPORT_FAKE_ENGINE_H_
#define SPEXD_TESTS_SERVICE_SUPPORT_FAKE_ENGINE_H_

#include <algorithm>
#include <chrono>
#include <functional>
#include <memory>
#include <stdexcept>
#include <stop_token>
#include <utility>
#include <vector>

#include "core/base/status_macros.h"
#include "core/base/threads/deadline.h"
#include "core/base/threads/mutex.h"
#include "core/extract/copy_image.h"
#include "core/extract/engine.h"
#include "core/model/frame.h"
#include "core/traces/measure.h"

namespace spexd::testing {

// State that a test sets and reads. It is shared with the engine. Thread-safe.
class EngineControl {
 public:
  // A fault of the engine in the middle of a job.
  struct Fault {
    enum class At { kNowhere, kEstimate, kPrepare, kExtract };
    At at = At::kNowhere;
    int after_bundles = 0;                  // Extract: number of the job's bundles that are delivered first
    std::function<absl::Status()> happens;  // returns the engine's error or throws; OK: the job continues
  };
  struct Behaviour {
    bool gate_closed = false;  // whether bundles wait before they are delivered
    bool prepare_gate_closed = false;
    int open_bundles = 0;  // number of bundles of each job that pass a closed gate
    absl::Status extract_error, prepare_error;
    int failing_bundle = -1;  // a bundle with an error of its own; -1: none
    bool throws = false;
    Fault fault;
    int64_t prepared_bytes = 1000;
    std::function<void(BundleResult*)> reshape;  // changes the values of a bundle; may be null
    int64_t negative_ivar = 0;                   // of coded images
    JobEstimate estimate;
    EngineInfo info = {"fake", "no device", 2, 0};
    absl::Status health;
    std::vector<DeviceStatus> devices;
  };
  struct Seen {
    int prepares = 0, extracts = 0, bundles = 0, at_gate = 0, cancelled = 0;
    int running = 0, max_running = 0;
  };

  template <typename Change>
  void Set(const Change& change) {
    MutexLock lock(&mutex_);
    change(behaviour_);
    changed_.NotifyAll();
  }
  Behaviour behaviour() const {
    MutexLock lock(&mutex_);
    Behaviour copy = behaviour_;
    // Copies of a status share memory with a reference count that the thread sanitizer cannot see.
    const auto own = [](absl::Status* status) { *status = absl::Status(status->code(), status->message()); };
    for (absl::Status* status : {&copy.extract_error, &copy.prepare_error, &copy.health}) own(status);
    for (DeviceStatus& device : copy.devices) own(&device.health);
    return copy;
  }
  Seen seen() const {
    MutexLock lock(&mutex_);
    return seen_;
  }
  template <typename Change>
  void See(const Change& change) {
    MutexLock lock(&mutex_);
    change(seen_);
    changed_.NotifyAll();
  }
  // Waits until `condition` holds for the state; returns false after a minute.
  template <typename Condition>
  bool WaitUntil(const Condition& condition) {
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(60);
    MutexLock lock(&mutex_);
    while (!condition(seen_)) {
      if (!changed_.WaitUntil(&mutex_, deadline)) return condition(seen_);
    }
    return true;
  }
  // Holds the caller while `closed` returns true; returns false once a stop is requested.
  template <typename Closed>
  bool Pass(const Closed& closed, const std::stop_token& stop) {
    const WakeOnStop wake(stop, &mutex_, &changed_);
    MutexLock lock(&mutex_);
    if (!closed(behaviour_)) return !stop.stop_requested();
    ++seen_.at_gate;
    changed_.NotifyAll();
    while (closed(behaviour_) && !stop.stop_requested()) changed_.Wait(&mutex_);
    --seen_.at_gate;
    return !stop.stop_requested();
  }

 private:
  mutable Mutex mutex_;
  CondVar changed_;
  Behaviour behaviour_ ABSL_GUARDED_BY(mutex_);
  Seen seen_ ABSL_GUARDED_BY(mutex_);
};

// Returns the engine's flux for a fibre's bin; exact in float.
inline float FakeFlux(int fibre, int bin) { return static_cast<float>(fibre * 8192 + bin); }
inline double FakeResidual(int bundle) { return 1e-12 * (1 + bundle); }
inline float FakeResolution(int fibre, int diagonal, int bin) {
  return static_cast<float>(fibre * 1024 + diagonal * 64 + bin % 64);
}

class FakePrepared : public PreparedPsf {
 public:
  FakePrepared(std::shared_ptr<const Psf> psf, const WavelengthGrid& grid, int bundle_size, int64_t bytes)
      : psf_(std::move(psf)), grid_(grid), bundle_size_(bundle_size), bytes_(bytes) {}
  const std::shared_ptr<const Psf>& psf() const override { return psf_; }
  const WavelengthGrid& grid() const override { return grid_; }
  int bundle_size() const override { return bundle_size_; }
  int64_t bytes() const override { return bytes_; }
  bool fine_grid_prior() const override { return false; }

 private:
  const std::shared_ptr<const Psf> psf_;
  const WavelengthGrid grid_;
  const int bundle_size_;
  const int64_t bytes_;
};

class FakeEngine : public Engine {
 public:
  explicit FakeEngine(std::shared_ptr<EngineControl> control) : control_(std::move(control)) {}

  EngineInfo Info() const override { return control_->behaviour().info; }
  JobEstimate Estimate(const JobOutline&) const override {
    const EngineControl::Behaviour now = control_->behaviour();
    Meet(now, EngineControl::Fault::At::kEstimate, 0).IgnoreError();  // it may throw; it has no status
    return now.estimate;
  }
  absl::Status Health() const override { return control_->behaviour().health; }
  std::vector<DeviceStatus> Devices() const override { return control_->behaviour().devices; }

  absl::StatusOr<std::shared_ptr<const PreparedPsf>> Prepare(std::shared_ptr<const Psf> psf,
                                                             const WavelengthGrid& grid, int bundle_size,
                                                             std::stop_token stop) override {
    control_->See([](auto& seen) { ++seen.prepares; });
    if (!control_->Pass([](const auto& b) { return b.prepare_gate_closed; }, stop)) {
      control_->See([](auto& seen) { ++seen.cancelled; });
      return absl::CancelledError("cancelled");
    }
    const EngineControl::Behaviour now = control_->behaviour();
    if (!now.prepare_error.ok()) return now.prepare_error;
    if (const absl::Status met = Meet(now, EngineControl::Fault::At::kPrepare, 0); !met.ok()) return met;
    return std::make_shared<const FakePrepared>(std::move(psf), grid, bundle_size, now.prepared_bytes);
  }

  // Measures decoded images. Refuses shifts of coded images.
  absl::StatusOr<MeasuredTraces> MeasureTraces(const TraceRequest& request) override {
    MeasuredTraces measured;
    if (request.coded != nullptr) {
      measured.shifts.x.status = ShiftStatus::kRefused;
      measured.shifts.reason = "x: the fake engine decodes nothing";
      return measured;
    }
    const Workers workers = {request.threads, request.stop};
    SPEXD_ASSIGN_OR_RETURN(const Image image, CopyImage(PlanesOf(request), workers));
    SPEXD_ASSIGN_OR_RETURN(measured.shifts, MeasureTraceShifts(image, *request.psf, request.reference.get(),
                                                               request.options, workers));
    return measured;
  }

  absl::StatusOr<StageTimes> Extract(const ExtractRequest& request, const BundleSink& sink) override {
    control_->See([](auto& seen) {
      ++seen.extracts;
      seen.max_running = std::max(seen.max_running, ++seen.running);
    });
    const absl::Status status = Run(request, sink);
    control_->See([&](auto& seen) {
      --seen.running;
      seen.cancelled += absl::IsCancelled(status) ? 1 : 0;
    });
    if (!status.ok()) return status;
    if (request.coded != nullptr && request.negative_ivar != nullptr)
      *request.negative_ivar = control_->behaviour().negative_ivar;
    StageTimes times;
    for (Stage stage : kAllStages) times[stage] = 0.25;
    return times;
  }

 private:
  // Returns the fault for this moment, OK if there is none.
  static absl::Status Meet(const EngineControl::Behaviour& now, EngineControl::Fault::At at, int delivered) {
    const bool met = now.fault.at == at && now.fault.after_bundles == delivered;
    return met ? now.fault.happens() : absl::OkStatus();
  }

  absl::Status Run(const ExtractRequest& request, const BundleSink& sink) {
    if (control_->behaviour().throws) throw std::runtime_error("thrown by the fake engine");
    const int size = request.prepared->bundle_size();
    int delivered = 0;
    for (int bundle = request.fibres.first / size; bundle * size < request.fibres.end(); ++bundle) {
      const bool passed = control_->Pass(
          [&](const auto& b) { return b.gate_closed && delivered >= b.open_bundles; }, request.stop);
      if (!passed) return absl::CancelledError("cancelled");
      const EngineControl::Behaviour now = control_->behaviour();
      if (!now.extract_error.ok()) return now.extract_error;
      const absl::Status met = Meet(now, EngineControl::Fault::At::kExtract, delivered);
      if (!met.ok()) return met;
      BundleResult result = Make(request, bundle, now.failing_bundle);
      if (now.reshape) now.reshape(&result);
      const absl::Status status = sink(std::move(result));
      if (!status.ok()) return status;
      ++delivered;
      control_->See([](auto& seen) { ++seen.bundles; });
    }
    return Meet(control_->behaviour(), EngineControl::Fault::At::kExtract, delivered);
  }

  static BundleResult Make(const ExtractRequest& request, int bundle, int failing) {
    const int size = request.prepared->bundle_size(), bins = request.prepared->grid().count;
    BundleResult result;
    result.bundle = bundle;
    result.residual = FakeResidual(bundle);
    result.root_error = 10 * result.residual;
    result.fibres = Intersect({bundle * size, size}, request.fibres);
    const int64_t fibres = result.fibres.count;
    result.flux.Assign({fibres, bins});
    result.ivar.Assign({fibres, bins}, 1);
    result.mask.Assign({fibres, bins});
    result.resolution.Assign({fibres, kResolutionDiagonals, bins});
    result.chi2pix.Assign({fibres, bins}, 0.5);
    result.pixmask.Assign({fibres, bins});
    for (int i = 0; i < fibres; ++i) {
      for (int j = 0; j < bins; ++j) {
        result.flux(i, j) = FakeFlux(result.fibres.first + i, j);
        for (int d = 0; d < kResolutionDiagonals; ++d) {
          result.resolution(i, d, j) = FakeResolution(result.fibres.first + i, d, j);
        }
      }
    }
    if (bundle == failing) {
      result.status = absl::InternalError("this bundle fails");
      result.flux.Assign({fibres, bins});
      result.ivar.Assign({fibres, bins});
      result.mask.Assign({fibres, bins}, kMaskNoData | kMaskSomeBadPix | kMaskAllBadPix);
    }
    if (request.want_model) {
      result.model.first_column = bundle;
      result.model.pixels.Assign({request.image->rows(), 2}, static_cast<float>(bundle + 1));
    }
    return result;
  }

  const std::shared_ptr<EngineControl> control_;
};

}  // namespace spexd::testing

#endif  // SPEXD_TESTS_SERVICE_SUPPORT_FAKE_ENGINE_H_
