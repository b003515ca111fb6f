#include "core/products/template_spectra.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <system_error>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "core/base/array.h"
#include "core/base/status_macros.h"
#include "core/fits/hdu/fits_file.h"
#include "core/fits/hdu/source.h"
#include "core/fits/images/image_hdu.h"

namespace spexd {
namespace {

// The samples of a primary HDU with one axis.
absl::StatusOr<std::vector<double>> Samples(const Hdu& hdu) {
  SPEXD_ASSIGN_OR_RETURN(const auto image, (ReadImage<double, 2>(hdu)));
  if (image.shape(0) != 1 || image.shape(1) < 2) {
    return hdu.Error(
        absl::StrFormat("is %d x %d, must be one row of samples", image.shape(0), image.shape(1)));
  }
  return std::vector<double>(image.flat().begin(), image.flat().end());
}

std::string WavelengthType(const Hdu& hdu) {
  return absl::AsciiStrToUpper(hdu.String("CTYPE1").value_or(""));
}

// The form in which a header gives wavelengths: linear, or by their logarithm.
enum class Scale { kLinear, kLog10, kLogStandard };

Scale ScaleOf(const Hdu& hdu) {
  if (absl::EndsWith(WavelengthType(hdu), "-LOG")) return Scale::kLogStandard;
  const bool log10 = hdu.Integer("LOGLAM") == 1 || hdu.Integer("DC-FLAG") == 1 || hdu.IsTrue("LOGLAM");
  return log10 ? Scale::kLog10 : Scale::kLinear;
}

absl::StatusOr<std::vector<double>> HeaderWavelengths(const Hdu& hdu) {
  SPEXD_ASSIGN_OR_RETURN(const double first, hdu.RequireNumber("CRVAL1"));
  const std::optional<double> matrix = hdu.Number("CD1_1");
  SPEXD_ASSIGN_OR_RETURN(const double step,
                         matrix.has_value() ? absl::StatusOr<double>(*matrix) : hdu.RequireNumber("CDELT1"));
  const std::string unit = absl::AsciiStrToLower(hdu.String("CUNIT1").value_or("angstrom"));
  if (unit != "angstrom" && unit != "angstroms") {
    return hdu.Error(absl::StrCat("CUNIT1 is ", unit, ", must be Angstrom"));
  }
  const double pixel = hdu.Number("CRPIX1").value_or(1);
  const Scale scale = ScaleOf(hdu);
  std::vector<double> wave;
  for (int64_t k = 0; k < (hdu.axes.empty() ? 0 : hdu.axes[0]); ++k) {
    const double away = (static_cast<double>(k + 1) - pixel) * step;
    wave.push_back(scale == Scale::kLinear  ? first + away
                   : scale == Scale::kLog10 ? std::pow(10, first + away)
                                            : first * std::exp(away / first));
  }
  return wave;
}

absl::StatusOr<Medium> MediumOf(const Hdu& hdu, const SpectraLayout& layout) {
  if (layout.medium.has_value()) return *layout.medium;
  const std::string type = WavelengthType(hdu),
                    said = absl::AsciiStrToLower(hdu.String("AIRORVAC").value_or(""));
  if (absl::StartsWith(type, "AWAV") || said == "air") return Medium::kAir;
  if (absl::StartsWith(type, "WAVE") || absl::StartsWith(said, "vac")) return Medium::kVacuum;
  return hdu.Error(
      "does not tell whether its wavelengths are those in air or in vacuum (CTYPE1 AWAV or WAVE, or "
      "AIRORVAC); say so");
}

absl::StatusOr<FitsFile> Open(const std::string& path) {
  SPEXD_ASSIGN_OR_RETURN(const Source source, Source::FromFile(path));
  return FitsFile::Parse(source);
}

bool IsFits(const std::string& name) {
  const std::string lower = absl::AsciiStrToLower(name);
  return absl::EndsWith(lower, ".fits") || absl::EndsWith(lower, ".fits.gz") || absl::EndsWith(lower, ".fit");
}

}  // namespace

absl::StatusOr<std::vector<std::string>> FindSpectra(const std::string& folder, SpectraLayout* layout) {
  namespace fs = std::filesystem;
  std::error_code error;
  fs::recursive_directory_iterator entries(folder, error);
  if (error) {
    return absl::InvalidArgumentError(absl::StrCat(folder, ": not a folder of spectra: ", error.message()));
  }
  std::vector<std::string> spectra, waves;
  for (const auto end = fs::end(entries); entries != end && !error; entries.increment(error)) {
    const fs::path path = entries->path();
    if (!IsFits(path.filename()) || !entries->is_regular_file()) continue;
    std::error_code none;  // a missing wave file shows when it is read
    if (!layout->wave_file.empty() && fs::equivalent(path, layout->wave_file, none)) continue;
    const bool wave = absl::StartsWithIgnoreCase(path.filename().string(), "WAVE");
    (wave ? waves : spectra).push_back(path);
  }
  if (error) return absl::InvalidArgumentError(absl::StrCat(folder, ": ", error.message()));
  std::sort(spectra.begin(), spectra.end());
  std::sort(waves.begin(), waves.end());
  if (layout->wave_file.empty() && waves.size() > 1) {
    return absl::InvalidArgumentError(absl::StrCat(folder, ": has ", waves.size(), " files of wavelengths (",
                                                   waves[0], ", ", waves[1],
                                                   "): spectra on mixed grids; name one"));
  }
  if (layout->wave_file.empty() && waves.size() == 1) layout->wave_file = waves[0];
  if (spectra.size() < 2) {
    return absl::InvalidArgumentError(
        absl::StrCat(folder, ": has ", spectra.size(), " FITS files of spectra, must have two or more"));
  }
  return spectra;
}

absl::StatusOr<StarSpectrum> ReadStarSpectrum(const std::string& path, const SpectraLayout& layout) {
  SPEXD_ASSIGN_OR_RETURN(const FitsFile file, Open(path));
  const Hdu& hdu = file.hdus()[0];
  StarSpectrum spectrum;
  SPEXD_ASSIGN_OR_RETURN(spectrum.flux, Samples(hdu));
  for (const auto& [name, keyword] : layout.parameters) {
    SPEXD_ASSIGN_OR_RETURN(const double value, hdu.RequireNumber(keyword));
    if (!std::isfinite(value)) return hdu.Error(absl::StrFormat("%s is %g", keyword, value));
    spectrum.parameters.push_back(value);
  }
  for (size_t k = 0; k < spectrum.flux.size(); ++k) {
    if (std::isfinite(spectrum.flux[k])) continue;
    return hdu.Error(absl::StrFormat("sample %d is %g", k + 1, spectrum.flux[k]));
  }
  if (layout.wave_file.empty()) {
    spectrum.grid = absl::StrCat("CTYPE1 '", WavelengthType(hdu), "'");
    for (const char* keyword : {"CRVAL1", "CRPIX1", "CDELT1", "CD1_1", "LOGLAM", "DC-FLAG"}) {
      const std::optional<double> value = hdu.Number(keyword);
      if (value.has_value()) absl::StrAppendFormat(&spectrum.grid, ", %s %.10g", keyword, *value);
    }
  }
  return spectrum;
}

absl::StatusOr<std::vector<double>> ReadStarWavelengths(const std::string& path,
                                                        const SpectraLayout& layout) {
  const bool separate = !layout.wave_file.empty();
  SPEXD_ASSIGN_OR_RETURN(const FitsFile file, Open(separate ? layout.wave_file : path));
  const Hdu& hdu = file.hdus()[0];
  SPEXD_ASSIGN_OR_RETURN(std::vector<double> wave, separate ? Samples(hdu) : HeaderWavelengths(hdu));
  SPEXD_ASSIGN_OR_RETURN(const Medium medium, MediumOf(hdu, layout));
  for (size_t k = 0; k < wave.size(); ++k) {
    const double previous = k > 0 ? wave[k - 1] : 0;
    if (!std::isfinite(wave[k]) || wave[k] <= previous) {
      return hdu.Error(
          absl::StrFormat("wavelength %d is %g after %g, must be greater", k + 1, wave[k], previous));
    }
  }
  if (medium == Medium::kAir) std::transform(wave.begin(), wave.end(), wave.begin(), VacuumWavelength);
  return wave;
}

double VacuumWavelength(double air) {
  if (air < 2000) return air;
  const double s2 = 1e8 / (air * air);
  return air * (1 + 0.00008336624212083 + 0.02408926869968 / (130.1065924522 - s2) +
                0.0001599740894897 / (38.92568793293 - s2));
}

}  // namespace spexd
