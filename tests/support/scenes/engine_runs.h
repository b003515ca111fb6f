// Runs engines on scenes, checks properties of a result, and compares two results.
#ifndef SPEXD_TESTS_SUPPORT_SCENES_ENGINE_RUNS_H_
#define SPEXD_TESTS_SUPPORT_SCENES_ENGINE_RUNS_H_

#include <cstdint>
#include <map>
#include <memory>

#include "core/extract/engine.h"
#include "core/model/image.h"
#include "core/model/psf.h"
#include "tests/support/scenes/scene.h"

namespace spexd::testing {

struct Scene {
  std::shared_ptr<Psf> psf;
  std::shared_ptr<Image> image;
};

Scene MakeScene(const SceneOptions& options);

struct RunOptions {
  WavelengthGrid grid;
  int bundle_size = 0;     // 0: all fibres in one bundle
  FibreRange fibres = {};  // empty: all
  double psferr = 0.01;
  double regularize = 0;
  bool want_model = false;
  bool float32 = false;
};

using Bundles = std::map<int, BundleResult>;  // by bundle number

// Runs a job that must succeed.
Bundles RunJob(Engine* engine, const Scene& scene, const RunOptions& options);
// The same with a prepared PSF, which determines grid and bundle size.
Bundles RunJob(Engine* engine, std::shared_ptr<const PreparedPsf> prepared, const Scene& scene,
               const RunOptions& options);
// Runs a job of one bundle, with its model.
BundleResult RunOne(Engine* engine, const Scene& scene, const WavelengthGrid& grid);

// Checks properties of any float64 result: shapes, finite values, no ivar of 0 without a mask, and the
// definition of NODATA bins.
void ExpectSound(const BundleResult& bundle);
// Expects equality to the bit.
void ExpectSame(const BundleResult& a, const BundleResult& b);
void ExpectSame(const Bundles& a, const Bundles& b);

int NoDataBins(const BundleResult& bundle);

// The largest differences of float64 results, over bins for which both have data.
struct ResultDifference {
  int64_t bins = 0;
  int64_t masks = 0;      // number of bins whose masks differ
  double pull = 0;        // |difference of flux| sqrt(ivar)
  double sqrt_ivar = 0;   // relative difference
  double resolution = 0;  // difference on any diagonal
  double chi2pix = 0;     // |difference| / (1 + chi2pix)
  double pixmask = 0;
  double model = 0;         // difference in sigma of a usable pixel, beyond float32's rounding
  double model_unseen = 0;  // |difference| / (1 + |model|) on other pixels
};

enum class Compared { kWithData, kUnmasked };  // bins without NODATA; bins with a MASK of 0

// Bundles that only one result has count as different masks. Models are compared if both results have one.
ResultDifference Compare(const Bundles& result, const Bundles& expected, const Image& image,
                         Compared compared = Compared::kWithData);

struct ResultLimits {
  double pull = 0;
  double sqrt_ivar = 0;
  double resolution = 0;
};

// Checks the limits, and that masks are identical.
void ExpectWithin(const ResultDifference& difference, const ResultLimits& limits);
// Checks values derived from the flux: equal within rounding, where they are well determined.
void ExpectQualityWithin(const ResultDifference& difference);
// Prints one line to stdout.
void Print(const char* what, const ResultDifference& difference);

}  // namespace spexd::testing

#endif  // SPEXD_TESTS_SUPPORT_SCENES_ENGINE_RUNS_H_
