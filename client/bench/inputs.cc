#include "client/bench/inputs.h"

#include <algorithm>
#include <filesystem>
#include <thread>
#include <utility>

#include "absl/strings/str_format.h"
#include "core/base/status_macros.h"
#include "core/fits/readers.h"
#include "core/model/psf_traces/move_psf.h"
#include "core/plan/grid_plan.h"
#include "core/simulate/instrument.h"
#include "core/simulate/sky_and_targets.h"
#include "core/simulate/truth_grid.h"

namespace spexd::bench {
namespace {

constexpr int kCopies = 8;
constexpr int kShifts = 100;  // shifts are at most 1e-4, the size of a barycentric correction
constexpr double kShift = 1e-6;
constexpr double kDisplacedX = 0.3, kDisplacedY = 0.2;  // pixels

std::string FileName(const std::string& path) { return std::filesystem::path(path).filename().string(); }

absl::Status CheckInputs(const Inputs& inputs) {
  SPEXD_RETURN_IF_ERROR(CheckGrid(*inputs.psf, inputs.grid));
  if (inputs.image->rows() == inputs.psf->rows && inputs.image->columns() == inputs.psf->columns) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(absl::StrFormat("image: %d x %d pixels, the PSF is for a CCD of %d x %d",
                                                    inputs.image->rows(), inputs.image->columns(),
                                                    inputs.psf->rows, inputs.psf->columns));
}

}  // namespace

int64_t Inputs::image_bytes() const { return image->pixels.size() * int64_t{2 * sizeof(float)}; }

int64_t Inputs::result_bytes() const {
  // The arrays are flux, ivar, mask, chi2pix and the resolution's diagonals.
  return int64_t{psf->fibres} * grid.count * (4 + kResolutionDiagonals) * int64_t{sizeof(float)};
}

absl::StatusOr<Inputs> ReadInputs(const std::string& image, const std::string& psf,
                                  const WavelengthGrid& grid) {
  Inputs inputs;
  SPEXD_ASSIGN_OR_RETURN(const Source psf_source, Source::FromFile(psf));
  SPEXD_ASSIGN_OR_RETURN(Psf model, ReadPsf(psf_source));
  SPEXD_ASSIGN_OR_RETURN(const Source image_source, Source::FromFile(image));
  const int threads = static_cast<int>(std::thread::hardware_concurrency());
  SPEXD_ASSIGN_OR_RETURN(const PreprocHeader header, ReadPreprocHeader(image_source));
  SPEXD_ASSIGN_OR_RETURN(Image pixels, ReadPreprocImage(image_source, {std::max(threads, 1)}));
  inputs.description = FileName(image) + " and " + FileName(psf);
  inputs.psf = std::make_shared<const Psf>(std::move(model));
  inputs.image = std::make_shared<const Image>(std::move(pixels));
  if (header.coded_bytes.has_value()) {
    SPEXD_ASSIGN_OR_RETURN(CodedImage coded, ReadPreprocCoded(image_source));
    inputs.coded = std::make_shared<const CodedImage>(std::move(coded));
  }
  inputs.grid = grid;
  SPEXD_RETURN_IF_ERROR(CheckInputs(inputs));
  return inputs;
}

absl::StatusOr<Inputs> SimulateInputs(const SimulatorOptions& options, const WavelengthGrid& grid) {
  // A bad grid is refused before the work.
  SPEXD_ASSIGN_OR_RETURN(const Psf psf, SimulatePsf(options));
  SPEXD_RETURN_IF_ERROR(CheckGrid(psf, grid));
  SPEXD_ASSIGN_OR_RETURN(Simulation simulation, Simulate(options));
  Image image;
  image.pixels = std::move(simulation.preproc.pixels);
  image.ivar = std::move(simulation.preproc.ivar);
  for (int64_t k = 0; k < image.pixels.size(); ++k) {
    float &pixel = image.pixels.data()[k], &ivar = image.ivar.data()[k];
    if (!IsUsable(pixel, ivar, simulation.preproc.mask.data()[k])) pixel = ivar = 0;
  }
  Inputs inputs;
  inputs.description = absl::StrFormat("simulated, seed %d", options.seed);
  inputs.psf = std::make_shared<const Psf>(std::move(simulation.psf));
  inputs.image = std::make_shared<const Image>(std::move(image));
  SPEXD_ASSIGN_OR_RETURN(const SimulatorOptions complete, CompleteOptions(options));
  SPEXD_ASSIGN_OR_RETURN(const WavelengthGrid grid_of_truth, MakeTruthGrid(*inputs.psf));
  inputs.sky = std::make_shared<const ReferenceSpectrum>(
      ReferenceSpectrum{simulation.truth.wave, MakeSky(grid_of_truth, complete.seed)});
  inputs.truth = std::move(simulation.truth);
  inputs.grid = grid;
  SPEXD_RETURN_IF_ERROR(CheckInputs(inputs));
  return inputs;
}

std::shared_ptr<const Psf> DisplacedPsf(const Inputs& inputs) {
  return std::make_shared<const Psf>(
      MovePsf(*inputs.psf, ShiftSeries({1, 1}, -kDisplacedX), ShiftSeries({1, 1}, -kDisplacedY)));
}

OwnPsfs::OwnPsfs(const Inputs& inputs) : grid_(inputs.grid) {
  for (int k = 0; k < kCopies; ++k) {
    Psf copy = *inputs.psf;
    copy.content_hash.clear();
    copies_.push_back(std::make_shared<const Psf>(std::move(copy)));
  }
}

WavelengthGrid OwnPsfs::grid(int frame) const { return grid_.Scaled(1 + kShift * (1 + frame % kShifts)); }

}  // namespace spexd::bench
