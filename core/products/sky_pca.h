// Principal components of what the sky model leaves in the sky fibres of many frames: what it misses, and
// when.
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
    int64_t spectra = 0;             // of sky fibres that were added
    std::vector<double> amplitudes;  // [component], rms over these spectra, sigma; NaN without any
  };
  WavelengthGrid grid;
  PcaOptions options;
  PrincipalComponents components;
  double noise_edge = 0;            // LargestNoiseVariance: components of less variance mean nothing
  std::vector<FrameSeries> frames;  // as they were added
};

// Takes one frame after the other; keeps 4 bytes for each bin of a sky fibre, for the amplitudes.
class SkyPcaSums {
 public:
  // How the frames' residuals are found.
  struct Residuals {
    const std::optional<Fiberflat>& fiberflat;
    int threads;
  };
  explicit SkyPcaSums(const PcaOptions& options) : options_(options) {}

  // Makes the frame's sky, and adds the residuals of its sky fibres: over their errors less what the fit
  // took, so that noise has variance 1. Errors that name the frame: of Analyse for its sky, and
  // InvalidArgument for another grid than the first frame's.
  absl::Status Add(const Frame& frame, const std::string& name, const Residuals& how);

  // FailedPrecondition with fewer than two spectra, InvalidArgument unless 1 <= count <= bins.
  absl::StatusOr<SkyPca> Solve(int count) const;

 private:
  struct Kept {
    std::string name;
    Array<float, 2> snapshots;  // [spectrum, bin]
  };

  const PcaOptions options_;
  WavelengthGrid grid_;
  std::optional<ResidualPca> sums_;  // none before the first frame
  std::vector<Kept> series_;         // of each frame
};

// HDUs EIGENVECTORS [component, bin], MEAN, WAVELENGTH, AMPLITUDE [frame, component] and the tables
// COMPONENTS (VARIANCE) and FRAMES (SPECTRA).
absl::Status WriteSkyPca(const SkyPca& pca, const std::string& path);

}  // namespace spexd

#endif  // SPEXD_CORE_PRODUCTS_SKY_PCA_H_
