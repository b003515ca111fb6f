// Principal components of the residuals of the sky model in the sky fibres of many frames: what the model
// misses, and when.
#ifndef SPEXD_CORE_PRODUCTS_SKY_PCA_H_
#define SPEXD_CORE_PRODUCTS_SKY_PCA_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/analysis/residual_pca.h"
#include "core/base/array.h"
#include "core/model/frame.h"
#include "core/products/inputs/fiberflat.h"

namespace spexd {

struct SkyPca {
  struct FrameSeries {
    std::string name;
    int64_t spectra = 0;             // number of sky fibres added
    std::vector<double> amplitudes;  // [component]: rms over these spectra, in sigma; NaN if there are none
  };
  WavelengthGrid grid;
  PcaOptions options;
  PrincipalComponents components;
  double noise_edge = 0;            // LargestNoiseVariance; components with less variance are not significant
  std::vector<FrameSeries> frames;  // in the order of their addition
};

// Adds up one frame after the other. For the amplitudes, it keeps 4 bytes for each bin of a sky fibre.
class SkyPcaSums {
 public:
  // Options for finding the residuals of frames.
  struct Residuals {
    const std::optional<Fiberflat>& fiberflat;
    int threads;
  };
  explicit SkyPcaSums(const PcaOptions& options) : options_(options) {}

  // Makes the frame's sky and adds the residuals of its sky fibres. They are divided by their errors, which
  // are reduced by what the fit took up, so that noise has variance 1. Errors name the frame: those of
  // Analyse for the sky, and InvalidArgument for a grid other than the first frame's.
  absl::Status Add(const Frame& frame, const std::string& name, const Residuals& how);

  // The first `count` components. FailedPrecondition with fewer than two spectra; InvalidArgument unless 1 <=
  // count <= bins.
  absl::StatusOr<SkyPca> Solve(int count) const;

 private:
  struct Kept {
    std::string name;
    Array<float, 2> snapshots;  // [spectrum, bin]
  };

  const PcaOptions options_;
  WavelengthGrid grid_;
  std::optional<ResidualPca> sums_;  // none until the first frame
  std::vector<Kept> series_;         // those of each frame
};

// Writes HDUs EIGENVECTORS [component, bin], MEAN, WAVELENGTH, AMPLITUDE [frame, component] and the tables
// COMPONENTS (VARIANCE) and FRAMES (SPECTRA).
absl::Status WriteSkyPca(const SkyPca& pca, const std::string& path);

}  // namespace spexd

#endif  // SPEXD_CORE_PRODUCTS_SKY_PCA_H_
