// Replaces libspexd_cuda.so by an engine that takes no time, so that the cost of a job is the server's own.
#include <memory>
#include <utility>
#include <vector>

#include "core/base/version.h"
#include "cuda/loader/build_identity.h"
#include "cuda/loader/cuda_module.h"

namespace spexd::testing {
namespace {

class InstantPrepared : public PreparedPsf {
 public:
  InstantPrepared(std::shared_ptr<const Psf> psf, const WavelengthGrid& grid, int bundle_size)
      : psf_(std::move(psf)), grid_(grid), bundle_size_(bundle_size) {}
  const std::shared_ptr<const Psf>& psf() const override { return psf_; }
  const WavelengthGrid& grid() const override { return grid_; }
  int bundle_size() const override { return bundle_size_; }
  int64_t bytes() const override { return 1; }
  bool fine_grid_prior() const override { return false; }

 private:
  const std::shared_ptr<const Psf> psf_;
  const WavelengthGrid grid_;
  const int bundle_size_;
};

BundleResult Ones(int bundle, FibreRange fibres, int bins) {
  BundleResult result;
  result.bundle = bundle;
  result.fibres = fibres;
  Spectra& spectra = result.spectra;
  for (Array<float, 2>* array : {&spectra.flux, &spectra.ivar, &spectra.chi2pix})
    array->Assign({fibres.count, bins}, 1);
  spectra.mask.Assign({fibres.count, bins});
  spectra.resolution.Assign({fibres.count, kResolutionDiagonals, bins}, 1);
  return result;
}

class InstantEngine : public Engine {
 public:
  EngineInfo Info() const override {
    EngineInfo info;
    info.kind = "cuda";
    info.device = "an engine that takes no time";
    info.threads = 4;
    return info;
  }

  absl::StatusOr<std::shared_ptr<const PreparedPsf>> Prepare(std::shared_ptr<const Psf> psf,
                                                             const WavelengthGrid& grid, int bundle_size,
                                                             std::stop_token stop) override {
    return std::make_shared<const InstantPrepared>(std::move(psf), grid, bundle_size);
  }

  // Makes all bundles before the first is sent, so that sending has the processors to itself.
  absl::StatusOr<StageTimes> Extract(const ExtractRequest& request, const BundleSink& sink) override {
    const int size = request.prepared->bundle_size();
    std::vector<BundleResult> results;
    for (int bundle = request.fibres.first / size; bundle * size < request.fibres.end(); ++bundle) {
      results.push_back(
          Ones(bundle, Intersect({bundle * size, size}, request.fibres), request.prepared->grid().count));
    }
    for (BundleResult& result : results) {
      if (absl::Status status = sink(std::move(result)); !status.ok()) return status;
    }
    return StageTimes();
  }
};

}  // namespace
}  // namespace spexd::testing

const spexd::CudaModule SpexdCudaModule = {
    .version = spexd::kVersion,
    .build = spexd::kBuildIdentity,
    .make_engine = [](const spexd::CudaEngineOptions&) -> absl::StatusOr<std::unique_ptr<spexd::Engine>> {
      return std::make_unique<spexd::testing::InstantEngine>();
    },
    .make_analyser =
        [](const spexd::CudaAnalyserOptions&) -> absl::StatusOr<std::unique_ptr<spexd::Analyser>> {
      return absl::UnimplementedError("no products here");
    },
};
