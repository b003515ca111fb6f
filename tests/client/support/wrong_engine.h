// The CPU engine with results that are tampered with.
#ifndef SPEXD_TESTS_CLIENT_SUPPORT_WRONG_ENGINE_H_
#define SPEXD_TESTS_CLIENT_SUPPORT_WRONG_ENGINE_H_

#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "core/extract/cpu/cpu_engine.h"
#include "core/extract/engine.h"
#include "core/extract/rounding.h"

namespace spexd::testing {

class WrongEngine : public Engine {
 public:
  // Changes a bundle of float64 arrays; returns false to drop it. `asked`: the request.
  using Change = std::function<bool(const ExtractRequest& asked, BundleResult* bundle)>;

  explicit WrongEngine(std::string kind, Change change)
      : kind_(std::move(kind)), change_(std::move(change)), engine_(MakeCpuEngine({.threads = 2})) {}

  EngineInfo Info() const override { return {kind_, "a device", 1, 0}; }
  absl::StatusOr<std::shared_ptr<const PreparedPsf>> Prepare(std::shared_ptr<const Psf> psf,
                                                             const WavelengthGrid& grid, int bundle_size,
                                                             std::stop_token stop) override {
    return engine_->Prepare(std::move(psf), grid, bundle_size, std::move(stop));
  }
  absl::StatusOr<StageTimes> Extract(const ExtractRequest& request, const BundleSink& sink) override {
    ExtractRequest in_double = request;
    in_double.float32 = false;
    return engine_->Extract(in_double, [&](BundleResult bundle) -> absl::Status {
      if (!change_(request, &bundle)) return absl::OkStatus();
      if (request.float32) {
        Spectra spectra = RoundToFloat32(bundle);
        // Restores NaN, which rounding would hide.
        for (int64_t k = 0; k < bundle.flux.size(); ++k) {
          if (bundle.flux.data()[k] != bundle.flux.data()[k]) spectra.flux.data()[k] = bundle.flux.data()[k];
        }
        KeepFloat32(&bundle);
        bundle.spectra = std::move(spectra);
      }
      return sink(std::move(bundle));
    });
  }

 private:
  const std::string kind_;
  const Change change_;
  const std::unique_ptr<Engine> engine_;
};

}  // namespace spexd::testing

#endif  // SPEXD_TESTS_CLIENT_SUPPORT_WRONG_ENGINE_H_
