#include "core/products/template_file.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <complex>
#include <numbers>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "core/analysis/velocity_units.h"
#include "core/base/status_macros.h"
#include "core/base/threads/deadline.h"
#include "core/fits/hdu/cards.h"
#include "core/fits/hdu/fits_builder.h"
#include "core/fits/hdu/fits_file.h"
#include "core/fits/hdu/table.h"
#include "core/fits/images/image_hdu.h"
#include "core/model/low_pass.h"
#include "core/products/inputs/input_outline.h"
#include "core/products/number_table.h"

namespace spexd {
namespace {

// The check that spectra are band-limited to their samples: little of the power of their finest detail may
// lie close to the highest frequency of the samples. Spectra filtered by `spex templates make` have less than
// 2 % there, and a spectrum sharper than its samples 14 %, like white noise. Power too small to matter, such
// as that of rounding, is ignored.
constexpr int kSegment = 128;                             // length of a segment, in samples
constexpr double kFine = 0.3, kTop = kLowPassCutoff;      // cycles a sample
constexpr double kMaxTopShare = 0.05, kMinRms = 1e-3;     // of the power above kFine; of the median flux
constexpr int64_t kMaxChecked = 64;                       // templates, evenly spread over the library
constexpr int64_t kRowsBetweenLooks = 1 << 16;            // rows between two checks of the stop token

// The power (mean square) of samples in frequency bands, from Hann-windowed segments (Welch 1967).
struct BandPower {
  double fine = 0, top = 0;  // above kFine, above kTop
};

class BandMeter {
 public:
  BandMeter() {
    for (int n = 0; n < kSegment; ++n) {
      window_[n] = 0.5 - 0.5 * std::cos(2 * std::numbers::pi * (n + 0.5) / kSegment);
      squares_ += window_[n] * window_[n];
    }
  }

  BandPower Of(absl::Span<const double> samples) const {
    BandPower power;
    int segments = 0;
    for (size_t first = 0; first + kSegment <= samples.size(); first += kSegment) {
      AddSegment(samples.subspan(first, kSegment), &power);
      ++segments;
    }
    if (segments == 0) return {};
    return {power.fine / segments, power.top / segments};
  }

 private:
  void AddSegment(absl::Span<const double> samples, BandPower* power) const {
    double mean = 0;
    for (const double value : samples) mean += value / kSegment;
    std::array<double, kSegment> windowed;
    for (int n = 0; n < kSegment; ++n) windowed[n] = window_[n] * (samples[n] - mean);
    for (int k = static_cast<int>(std::ceil(kFine * kSegment)); k <= kSegment / 2; ++k) {
      const std::complex<double> rotation = std::polar(1.0, 2 * std::numbers::pi * k / kSegment);
      std::complex<double> sum = 0;  // by Horner's rule
      for (int n = kSegment - 1; n >= 0; --n) sum = sum * rotation + windowed[n];
      const double both = k == kSegment / 2 ? 1 : 2;  // frequencies k and -k
      const double part = both * std::norm(sum) / (kSegment * squares_);
      power->fine += part;
      if (k > kTop * kSegment) power->top += part;
    }
  }

  std::array<double, kSegment> window_;
  double squares_ = 0;
};

// The parameters of a row of the library, such as "TEFF 4500, LOGG 2".
std::string NodeName(const TemplateLibrary& library, int64_t row) {
  std::vector<std::string> values(library.names.size());
  for (size_t k = library.names.size(); k-- > 0;) {
    const auto size = static_cast<int64_t>(library.axes[k].size());
    values[k] = absl::StrFormat("%s %g", library.names[k], library.axes[k][static_cast<size_t>(row % size)]);
    row /= size;
  }
  return absl::StrJoin(values, ", ");
}

absl::Status CheckBandLimit(const Hdu& hdu, const TemplateLibrary& library, const std::stop_token& stop) {
  const BandMeter meter;
  const int64_t every = std::max<int64_t>(1, library.templates() / kMaxChecked);
  for (int64_t row = 0; row < library.templates(); row += every) {
    SPEXD_RETURN_IF_ERROR(CheckStop(stop));
    const BandPower power = meter.Of(library.flux.Row(row));
    const double rms = std::sqrt(power.top);
    if (rms <= kMinRms || power.top <= kMaxTopShare * power.fine) continue;
    return hdu.Error(
        absl::StrFormat("templates: the spectrum of %s is not band-limited to its samples every %.3g km/s: "
                        "%.1f %% of the power "
                        "of its detail (above %g cycles a sample) lies above %g, %.2g of the flux; must be "
                        "at most %g %%. spex "
                        "templates make filters spectra so",
                        NodeName(library, row), library.step * kLightSpeed, 100 * power.top / power.fine,
                        kFine, kTop, rms, 100 * kMaxTopShare));
  }
  return absl::OkStatus();
}

// The parameters of each template.
absl::StatusOr<std::vector<std::vector<double>>> ReadNodes(const Hdu& hdu,
                                                           const std::vector<std::string>& names,
                                                           const std::stop_token& stop) {
  SPEXD_ASSIGN_OR_RETURN(const TableView view, TableView::Make(hdu));
  SPEXD_RETURN_IF_ERROR(hdu.TakeMemory(view.rows() * kBytesOfTemplateNode));
  std::vector<std::vector<double>> nodes(static_cast<size_t>(view.rows()), std::vector<double>(names.size()));
  for (size_t k = 0; k < names.size(); ++k) {
    SPEXD_ASSIGN_OR_RETURN(const Column* column, view.Get(names[k]));
    if (column->repeat != 1)
      return hdu.Error(absl::StrCat("column ", names[k], " must have one value a row"));
    for (int64_t row = 0; row < view.rows(); ++row) {
      if (row % kRowsBetweenLooks == 0) SPEXD_RETURN_IF_ERROR(CheckStop(stop));
      SPEXD_RETURN_IF_ERROR(
          view.Numbers(row, *column, absl::MakeSpan(&nodes[static_cast<size_t>(row)][k], 1)));
    }
  }
  return nodes;
}

}  // namespace

absl::StatusOr<TemplateLibrary> ReadTemplates(const Source& source, const std::stop_token& stop) {
  SPEXD_ASSIGN_OR_RETURN(const FitsFile file, FitsFile::Parse(source));
  SPEXD_RETURN_IF_ERROR(TemplatesOutline(file, stop).status());
  SPEXD_ASSIGN_OR_RETURN(const Hdu* hdu, file.Get({"TEMPLATES"}));
  SPEXD_ASSIGN_OR_RETURN(const Hdu* params, file.Get({"PARAMS"}));
  SPEXD_ASSIGN_OR_RETURN(const double first, hdu->RequireNumber("CRVAL1"));
  SPEXD_ASSIGN_OR_RETURN(const double step, hdu->RequireNumber("CDELT1"));
  SPEXD_ASSIGN_OR_RETURN(const int64_t logarithmic, hdu->RequireInteger("LOGLAM", 1, 1));
  SPEXD_ASSIGN_OR_RETURN(const int64_t count, hdu->RequireInteger("NPAR", 1, kMaxTemplateParameters));
  (void)logarithmic;
  const std::string medium = absl::AsciiStrToLower(hdu->String("AIRORVAC").value_or("vac"));
  if (medium != "vac") {
    return hdu->Error(absl::StrCat("AIRORVAC is ", Excerpt(medium),
                                   ", must be vac: `spex templates make` converts spectra in air"));
  }
  std::vector<std::string> names;
  for (int64_t k = 1; k <= count; ++k) {
    const std::string keyword = absl::StrCat("PARNAM", k);
    const std::optional<std::string> name = hdu->String(keyword);
    if (!name.has_value()) return hdu->Error(absl::StrCat("has no keyword ", keyword));
    if (Excerpt(*name) != *name) {
      return hdu->Error(
          absl::StrCat(keyword, " is \"", Excerpt(*name), "\", must be a short name in printable ASCII"));
    }
    names.push_back(*name);
  }
  SPEXD_ASSIGN_OR_RETURN(const auto nodes, ReadNodes(*params, names, stop));
  SPEXD_ASSIGN_OR_RETURN(const auto flux, (ReadImage<float, 2>(*hdu, {.stop = stop})));
  SPEXD_RETURN_IF_ERROR(hdu->TakeMemory(flux.size() * static_cast<int64_t>(sizeof(double))));
  absl::StatusOr<TemplateLibrary> library = MakeTemplateLibrary(
      first * std::numbers::ln10, step * std::numbers::ln10, std::move(names), nodes, flux);
  if (!library.ok()) return hdu->Error(library.status().message());
  SPEXD_RETURN_IF_ERROR(CheckBandLimit(*hdu, *library, stop));
  return library;
}

absl::Status WriteTemplates(const TemplateLibrary& library, const std::string& path,
                            const TemplateRemarks& remarks) {
  const int64_t rows = library.templates(), samples = library.samples();
  FitsBuilder fits(4 * rows * samples + (1 << 20));
  fits.BeginImage("PRIMARY", FLOAT_IMG, {});
  fits.BeginImage("TEMPLATES", FLOAT_IMG, {rows, samples});
  fits.Text("RRTYPE", "STAR", "kind of templates");
  if (!remarks.subtype.empty()) fits.Text("RRSUBTYP", remarks.subtype, "kind of stars");
  fits.Integer("LOGLAM", 1, "uniform in log10 of the wavelength");
  fits.Text("CTYPE1", "LOGWAVE", "log10 of the wavelength");
  fits.Number("CRPIX1", 1, "first sample");
  fits.Number("CRVAL1", library.first_log_wave / std::numbers::ln10, "log10 of its wavelength, Angstrom");
  fits.Number("CDELT1", library.step / std::numbers::ln10, "step of log10");
  fits.Number("VELSTEP", library.step * kLightSpeed, "[km/s] the same as a velocity");
  fits.Text("AIRORVAC", "vac", "wavelengths in vacuum");
  fits.Integer("NPAR", static_cast<int64_t>(library.names.size()), "parameters of the grid");
  for (size_t k = 0; k < library.names.size(); ++k) {
    fits.Text(absl::StrCat("PARNAM", k + 1).c_str(), library.names[k], "column of PARAMS");
  }
  for (const std::string& comment : remarks.comments) fits.Cards({"COMMENT " + comment});
  std::vector<float> flux(library.flux.flat().begin(), library.flux.flat().end());
  fits.Pixels(absl::MakeConstSpan(flux));
  NumberTable table(rows);
  int64_t repeat = rows;  // number of rows in which a parameter keeps its value
  for (size_t k = 0; k < library.names.size(); ++k) {
    const std::vector<double>& axis = library.axes[k];
    const int64_t size = static_cast<int64_t>(axis.size());
    repeat /= size;
    std::vector<double> values;
    for (int64_t row = 0; row < rows; ++row) values.push_back(axis[static_cast<size_t>(row / repeat % size)]);
    table.Add(library.names[k], std::move(values));
  }
  table.Write("PARAMS", &fits);
  return fits.Write(path);
}

}  // namespace spexd
