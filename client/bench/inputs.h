// The inputs of a benchmark: a PSF and a frame, from files or simulated in memory.
#ifndef SPEXD_CLIENT_BENCH_INPUTS_H_
#define SPEXD_CLIENT_BENCH_INPUTS_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "core/extract/engine.h"
#include "core/model/image.h"
#include "core/model/psf.h"
#include "core/model/truth.h"
#include "core/model/wavelength_grid.h"
#include "core/simulate/simulator.h"
#include "core/traces/shifts/reference.h"

namespace spexd::bench {

struct Inputs {
  std::string description;  // "simulated, seed 1", or the files' names
  std::shared_ptr<const Psf> psf;
  std::shared_ptr<const Image> image;
  std::shared_ptr<const CodedImage> coded;  // the image as in its file, for engines that decode; may be null
  std::optional<Truth> truth;               // only for a simulated frame
  std::shared_ptr<const ReferenceSpectrum> sky;  // only for a simulated frame: the light that all fibres see
  WavelengthGrid grid;
  int bundle_size = 25;

  int bundles() const { return (psf->fibres + bundle_size - 1) / bundle_size; }
  FibreRange fibres() const { return {0, psf->fibres}; }
  int64_t image_bytes() const;   // pixels and ivar
  int64_t result_bytes() const;  // float32 spectra, as an engine returns them
};

// Reads the files. Errors of ReadPsf, ReadPreproc and CheckGrid; InvalidArgument: image and PSF have CCDs of
// different sizes.
absl::StatusOr<Inputs> ReadInputs(const std::string& image, const std::string& psf,
                                  const WavelengthGrid& grid);
absl::StatusOr<Inputs> SimulateInputs(const SimulatorOptions& options, const WavelengthGrid& grid);

// Returns the PSF of another exposure, with traces that are off by 0.3 pixels in x and 0.2 in y, for frames
// that measure their trace shifts.
std::shared_ptr<const Psf> DisplacedPsf(const Inputs& inputs);

// A PSF and a grid for each frame, as in production: copies of the PSF in turn, each time on a grid that is
// shifted by other parts in a million. An engine can therefore use nothing of one frame for the next.
class OwnPsfs {
 public:
  explicit OwnPsfs(const Inputs& inputs);

  const std::shared_ptr<const Psf>& psf(int frame) const { return copies_[frame % copies_.size()]; }
  WavelengthGrid grid(int frame) const;

 private:
  std::vector<std::shared_ptr<const Psf>> copies_;
  WavelengthGrid grid_;
};

}  // namespace spexd::bench

#endif  // SPEXD_CLIENT_BENCH_INPUTS_H_
