#include "core/fits/spectra_hdus.h"

#include <cmath>
#include <cstddef>
#include <utility>

#include "absl/strings/str_format.h"
#include "core/base/status_macros.h"
#include "core/fits/images/image_hdu.h"

namespace spexd {
namespace {

WavelengthGrid GridOf(const std::vector<double>& wave, const Hdu& flux) {
  WavelengthGrid grid{wave[0], flux.Number("WAVESTEP").value_or(1), static_cast<int>(wave.size())};
  if (wave.size() > 1) grid.step = wave[1] - wave[0];
  if (std::abs(grid.last() - wave.back()) > 1e-9 * wave.back()) {
    grid.step = (wave.back() - wave[0]) / static_cast<double>(wave.size() - 1);
  }
  if (!(grid.step > 0)) grid.step = 1;
  return grid;
}

// Reads a [fibre, wave] image of the shape of `flux`. A missing one is filled with zeros unless it is
// `required`.
template <typename T>
absl::StatusOr<Array<T, 2>> ReadSpectra(const FitsFile& file, const std::string& name, const Hdu& flux,
                                        const Array<float, 2>::Shape& shape, bool required,
                                        const Workers& workers) {
  if (!required && file.Find({name}) == nullptr) {
    SPEXD_RETURN_IF_ERROR(flux.TakeMemory(shape[0] * shape[1] * static_cast<int64_t>(sizeof(T))));
    return Array<T, 2>({shape[0], shape[1]});
  }
  SPEXD_ASSIGN_OR_RETURN(const Hdu* hdu, file.Get({name}));
  SPEXD_ASSIGN_OR_RETURN(auto values, (ReadImage<T, 2>(*hdu, workers)));
  SPEXD_RETURN_IF_ERROR(CheckSpectraShape(*hdu, {values.shape(0), values.shape(1)}, shape[0], shape[1]));
  return values;
}

absl::StatusOr<Array<float, 3>> ReadResolution(const FitsFile& file, const std::string& prefix,
                                               int64_t fibres, int64_t bins, const Workers& workers) {
  SPEXD_ASSIGN_OR_RETURN(const Hdu* hdu, file.Get({prefix + "RESOLUTION"}));
  SPEXD_ASSIGN_OR_RETURN(auto values, (ReadImage<float, 3>(*hdu, workers)));
  if (values.shape(0) != fibres || values.shape(2) != bins || values.shape(1) % 2 != 1) {
    return hdu->Error(
        absl::StrFormat("has shape %d x %d x %d, must be %d fibres x an odd number of diagonals x %d "
                        "wavelengths",
                        values.shape(0), values.shape(1), values.shape(2), fibres, bins));
  }
  return values;
}

}  // namespace

absl::StatusOr<std::vector<double>> ReadWavelengths(const FitsFile& file, const std::string& prefix) {
  SPEXD_ASSIGN_OR_RETURN(const Hdu* hdu, file.Get({prefix + "WAVELENGTH", prefix + "WAVE"}));
  SPEXD_ASSIGN_OR_RETURN(const auto values, (ReadImage<double, 2>(*hdu)));
  if (values.shape(0) != 1 || values.size() > kMaxWavelengthBins) {
    return hdu->Error(absl::StrFormat("has shape %d x %d, must be one row of at most %d wavelengths",
                                      values.shape(0), values.shape(1), kMaxWavelengthBins));
  }
  const std::vector<double> wave(values.flat().begin(), values.flat().end());
  const double step =
      wave.size() > 1 ? (wave.back() - wave.front()) / static_cast<double>(wave.size() - 1) : 1;
  for (size_t k = 0; k < wave.size(); ++k) {
    // The comparison is written so that NaN fails.
    if (!(std::abs(wave[k] - (wave[0] + static_cast<double>(k) * step)) < 1e-3 * step) ||
        !std::isfinite(wave[k])) {
      return hdu->Error(
          absl::StrFormat("wavelength %d is %g: they must be finite, increasing and uniform", k, wave[k]));
    }
  }
  return wave;
}

absl::Status CheckSpectraShape(const Hdu& hdu, const Array<float, 2>::Shape& shape, int64_t fibres,
                               int64_t bins) {
  if (shape[0] == fibres && shape[1] == bins) return absl::OkStatus();
  return hdu.Error(absl::StrFormat("has shape %d x %d, must be %d fibres x %d wavelengths", shape[0],
                                   shape[1], fibres, bins));
}

absl::StatusOr<CameraSpectra> ReadCameraSpectra(const FitsFile& file, const CameraHdus& hdus,
                                                const Workers& workers) {
  const std::string& prefix = hdus.prefix;
  SPEXD_ASSIGN_OR_RETURN(const Hdu* flux, file.Get({prefix + "FLUX"}));
  SPEXD_ASSIGN_OR_RETURN(const std::vector<double> wave, ReadWavelengths(file, prefix));
  CameraSpectra camera;
  camera.grid = GridOf(wave, *flux);
  Spectra& spectra = camera.spectra;
  SPEXD_ASSIGN_OR_RETURN(spectra.flux, (ReadImage<float, 2>(*flux, workers)));
  const Array<float, 2>::Shape shape{spectra.flux.shape(0), camera.grid.count};
  if (shape[0] > hdus.max_rows)
    return flux->Error(absl::StrFormat("has %d fibres, the limit is %d", shape[0], hdus.max_rows));
  SPEXD_RETURN_IF_ERROR(CheckSpectraShape(*flux, spectra.flux.shape(), shape[0], shape[1]));
  SPEXD_ASSIGN_OR_RETURN(spectra.ivar,
                         ReadSpectra<float>(file, prefix + "IVAR", *flux, shape, true, workers));
  SPEXD_ASSIGN_OR_RETURN(spectra.mask,
                         ReadSpectra<uint32_t>(file, prefix + "MASK", *flux, shape, false, workers));
  if (hdus.chi2pix) {
    SPEXD_ASSIGN_OR_RETURN(spectra.chi2pix,
                           ReadSpectra<float>(file, prefix + "CHI2PIX", *flux, shape, false, workers));
  }
  SPEXD_ASSIGN_OR_RETURN(spectra.resolution, ReadResolution(file, prefix, shape[0], shape[1], workers));
  return camera;
}

}  // namespace spexd
