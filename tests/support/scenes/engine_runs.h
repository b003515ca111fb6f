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

using Bundles = std::map<int, BundleResult>;  // key: bundle number

// Runs a job that must succeed.
Bundles RunJob(Engine* engine, const Scene& scene, const RunOptions& options);
// The same with a PSF already prepared; grid and bundle size are its.
Bundles RunJob(Engine* engine, std::shared_ptr<const PreparedPsf> prepared, const Scene& scene,
               const RunOptions& options);
// A job of one bundle, with its model.
BundleResult RunOne(Engine* engine, const Scene& scene, const WavelengthGrid& grid);

// Checks properties of any float64 result: shapes, finite values, never an ivar of 0 without a mask, and
// NODATA bins as they are defined.
void ExpectSound(const BundleResult& bundle);
// Expects equality to the bit.
void ExpectSame(const BundleResult& a, const BundleResult& b);
void ExpectSame(const Bundles& a, const Bundles& b);

int NoDataBins(const BundleResult& bundle);

// The largest differences of float64 results, in bins that both have data for.
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

enum class Compared { kWithData, kUnmasked };  // bins without NODATA, bins with a MASK of 0

// Bundles that only one result has count as differing masks. Models are compared if both have one.
ResultDifference Compare(const Bundles& result, const Bundles& expected, const Image& image,
                         Compared compared = Compared::kWithData);

struct ResultLimits {
  double pull = 0;
  double sqrt_ivar = 0;
  double resolution = 0;
};

// Masks must be identical.
void ExpectWithin(const ResultDifference& difference, const ResultLimits& limits);
// Checks values that follow from the flux: equal within rounding, where that is well determined.
void ExpectQualityWithin(const ResultDifference& difference);
// One line on stdout.
void Print(const char* what, const ResultDifference& difference);

}  // namespace spexd::testing

#endif  // SPEXD_TESTS_SUPPORT_SCENES_ENGINE_RUNS_H_
