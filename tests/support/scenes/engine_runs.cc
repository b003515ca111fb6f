#include "tests/support/scenes/engine_runs.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <utility>

#include "core/model/frame.h"
#include "gtest/gtest.h"

namespace spexd::testing {
namespace {

// float32 roundings of two nearly equal values may differ by one unit in the last place.
constexpr double kFloatRounding = 1.2e-7;

double ModelAt(const ModelWindow& model, int row, int column) {
  const int at = column - model.first_column;
  return at < 0 || at >= model.pixels.shape(1) ? 0 : model.pixels(row, at);
}

void Raise(double value, double* largest) {
  // A NaN counts as an infinite difference.
  if (!(value <= *largest)) *largest = std::isnan(value) ? INFINITY : value;
}

void CompareModels(const ModelWindow& result, const ModelWindow& expected, const Image& image,
                   ResultDifference* difference) {
  if (result.pixels.empty() || expected.pixels.empty()) return;
  ASSERT_EQ(result.pixels.shape(0), image.rows());
  ASSERT_EQ(expected.pixels.shape(0), image.rows());
  for (int row = 0; row < image.rows(); ++row) {
    for (int column = 0; column < image.columns(); ++column) {
      const double a = ModelAt(result, row, column), b = ModelAt(expected, row, column);
      const double ivar = image.ivar(row, column);
      if (ivar > 0) {
        const double beyond = std::abs(a - b) - kFloatRounding * std::max(std::abs(a), std::abs(b));
        Raise(std::max(beyond, 0.0) * std::sqrt(ivar), &difference->model);
      } else {
        Raise(std::abs(a - b) / (1 + std::abs(b)), &difference->model_unseen);
      }
    }
  }
}

}  // namespace

Scene MakeScene(const SceneOptions& options) {
  Scene scene;
  scene.psf = MakeScenePsf(options);
  scene.image = MakeSceneImage(*scene.psf, options);
  return scene;
}

Bundles RunJob(Engine* engine, const Scene& scene, const RunOptions& options) {
  const int bundle_size = options.bundle_size > 0 ? options.bundle_size : scene.psf->fibres;
  auto prepared = engine->Prepare(scene.psf, options.grid, bundle_size);
  EXPECT_TRUE(prepared.ok()) << prepared.status();
  if (!prepared.ok()) return {};
  return RunJob(engine, *std::move(prepared), scene, options);
}

Bundles RunJob(Engine* engine, std::shared_ptr<const PreparedPsf> prepared, const Scene& scene,
               const RunOptions& options) {
  Bundles bundles;
  ExtractRequest request;
  request.prepared = std::move(prepared);
  request.image = scene.image;
  request.fibres = options.fibres.empty() ? FibreRange{0, scene.psf->fibres} : options.fibres;
  request.psferr = options.psferr;
  request.regularize = options.regularize;
  request.want_model = options.want_model;
  request.float32 = options.float32;
  const auto times = engine->Extract(request, [&](BundleResult bundle) {
    EXPECT_TRUE(bundle.status.ok()) << bundle.status;
    EXPECT_EQ(bundles.count(bundle.bundle), 0u) << "bundle " << bundle.bundle << " came twice";
    bundles[bundle.bundle] = std::move(bundle);
    return absl::OkStatus();
  });
  EXPECT_TRUE(times.ok()) << times.status();
  return bundles;
}

BundleResult RunOne(Engine* engine, const Scene& scene, const WavelengthGrid& grid) {
  Bundles bundles = RunJob(engine, scene, {.grid = grid, .want_model = true});
  EXPECT_EQ(bundles.size(), 1u);
  return std::move(bundles[0]);
}

void ExpectSound(const BundleResult& bundle) {
  EXPECT_TRUE(bundle.status.ok()) << bundle.status;
  const int64_t fibres = bundle.fibres.count, bins = bundle.flux.shape(1);
  for (const Array<double, 2>* array : {&bundle.flux, &bundle.ivar, &bundle.chi2pix, &bundle.pixmask})
    ASSERT_EQ(array->shape(), (Array<double, 2>::Shape{fibres, bins}));
  ASSERT_EQ(bundle.mask.shape(), (Array<uint32_t, 2>::Shape{fibres, bins}));
  ASSERT_EQ(bundle.resolution.shape(), (Array<double, 3>::Shape{fibres, kResolutionDiagonals, bins}));
  for (int i = 0; i < fibres; ++i) {
    for (int j = 0; j < bins; ++j) {
      const uint32_t mask = bundle.mask(i, j);
      ASSERT_TRUE(std::isfinite(bundle.flux(i, j)) && std::isfinite(bundle.ivar(i, j)) &&
                  std::isfinite(bundle.chi2pix(i, j)) && std::isfinite(bundle.pixmask(i, j)))
          << i << " " << j;
      ASSERT_TRUE(bundle.ivar(i, j) > 0 || (mask & kMaskNoData)) << i << " " << j;
      if (mask & kMaskNoData) {
        ASSERT_EQ(mask, kMaskNoData | kMaskAllBadPix | kMaskSomeBadPix);
        ASSERT_EQ(bundle.flux(i, j), 0);
        ASSERT_EQ(bundle.ivar(i, j), 0);
        ASSERT_EQ(bundle.chi2pix(i, j), 0);
        ASSERT_EQ(bundle.pixmask(i, j), 1);
      }
      for (int d = 0; d < kResolutionDiagonals; ++d) ASSERT_TRUE(std::isfinite(bundle.resolution(i, d, j)));
    }
  }
}

void ExpectSame(const BundleResult& a, const BundleResult& b) {
  EXPECT_EQ(a.bundle, b.bundle);
  EXPECT_EQ(a.fibres, b.fibres);
  EXPECT_TRUE(a.flux == b.flux);
  EXPECT_TRUE(a.ivar == b.ivar);
  EXPECT_TRUE(a.mask == b.mask);
  EXPECT_TRUE(a.resolution == b.resolution);
  EXPECT_TRUE(a.chi2pix == b.chi2pix);
  EXPECT_TRUE(a.pixmask == b.pixmask);
  EXPECT_TRUE(a.spectra == b.spectra);
  EXPECT_EQ(a.model.first_column, b.model.first_column);
  EXPECT_TRUE(a.model.pixels == b.model.pixels);
}

void ExpectSame(const Bundles& a, const Bundles& b) {
  ASSERT_EQ(a.size(), b.size());
  for (const auto& [number, bundle] : a) {
    SCOPED_TRACE(number);
    ASSERT_EQ(b.count(number), 1u);
    ExpectSame(bundle, b.at(number));
  }
}

int NoDataBins(const BundleResult& bundle) {
  int count = 0;
  for (uint32_t mask : bundle.mask.flat()) count += (mask & kMaskNoData) != 0;
  return count;
}

ResultDifference Compare(const Bundles& result, const Bundles& expected, const Image& image,
                         Compared compared) {
  const uint32_t left_out = compared == Compared::kWithData ? kMaskNoData : ~0u;
  ResultDifference difference;
  for (const auto& [number, b] : expected) {
    const auto found = result.find(number);
    if (found == result.end() || found->second.flux.shape() != b.flux.shape()) {
      difference.masks += b.mask.size();
      continue;
    }
    const BundleResult& a = found->second;
    for (int i = 0; i < b.fibres.count; ++i) {
      for (int j = 0; j < b.flux.shape(1); ++j) {
        difference.masks += a.mask(i, j) != b.mask(i, j);
        if ((a.mask(i, j) & left_out) || (b.mask(i, j) & left_out)) continue;
        ++difference.bins;
        const double sigma = std::sqrt(b.ivar(i, j));
        Raise(std::abs(a.flux(i, j) - b.flux(i, j)) * sigma, &difference.pull);
        Raise(std::abs(std::sqrt(a.ivar(i, j)) / sigma - 1), &difference.sqrt_ivar);
        for (int d = 0; d < kResolutionDiagonals; ++d)
          Raise(std::abs(a.resolution(i, d, j) - b.resolution(i, d, j)), &difference.resolution);
        Raise(std::abs(a.chi2pix(i, j) - b.chi2pix(i, j)) / (1 + b.chi2pix(i, j)), &difference.chi2pix);
        Raise(std::abs(a.pixmask(i, j) - b.pixmask(i, j)), &difference.pixmask);
      }
    }
    CompareModels(a.model, b.model, image, &difference);
  }
  for (const auto& [number, a] : result) {
    if (expected.count(number) == 0) difference.masks += a.mask.size();
  }
  return difference;
}

void ExpectWithin(const ResultDifference& difference, const ResultLimits& limits) {
  EXPECT_EQ(difference.masks, 0);
  EXPECT_LT(difference.pull, limits.pull);
  EXPECT_LT(difference.sqrt_ivar, limits.sqrt_ivar);
  EXPECT_LT(difference.resolution, limits.resolution);
}

void ExpectQualityWithin(const ResultDifference& difference) {
  EXPECT_LT(difference.chi2pix, 1e-8);
  EXPECT_LT(difference.pixmask, 1e-12);
  EXPECT_LT(difference.model, 1e-6);
}

void Print(const char* what, const ResultDifference& d) {
  std::printf(
      "  %s: pull %.2g sigma, sqrt(ivar) %.2g, resolution %.2g in %lld bins; chi2pix %.2g, pixmask %.2g, "
      "model %.2g sigma (unseen pixels %.2g); %lld masks differ\n",
      what, d.pull, d.sqrt_ivar, d.resolution, static_cast<long long>(d.bins), d.chi2pix, d.pixmask, d.model,
      d.model_unseen, static_cast<long long>(d.masks));
}

}  // namespace spexd::testing
