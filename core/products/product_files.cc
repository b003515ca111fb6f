#include "core/products/product_files.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "core/analysis/usable_spectra.h"
#include "core/base/status_macros.h"
#include "core/fits/frame_header.h"
#include "core/fits/hdu/fits_builder.h"
#include "core/fits/hdu/table_file.h"
#include "core/fits/readers.h"
#include "core/products/number_table.h"

namespace spexd {
namespace {

Array<float, 2> Rounded(const Array<double, 2>& values) {
  Array<float, 2> rounded(values.shape());
  std::transform(values.flat().begin(), values.flat().end(), rounded.flat().begin(),
                 [](double value) { return static_cast<float>(value); });
  return rounded;
}

void AddImage(const char* name, const Array<double, 2>& values, FitsBuilder* fits) {
  fits->BeginImage(name, FLOAT_IMG, {values.shape(0), values.shape(1)});
  const Array<float, 2> rounded = Rounded(values);
  fits->Pixels(rounded.flat());
}

// What the fibermap says of the targets; columns that it lacks are left out.
void AddTargets(const Frame& frame, const std::vector<int>& targets, NumberTable* table) {
  for (const char* name : {"TARGETID", "FIBER"}) {
    const absl::StatusOr<std::vector<int64_t>> all = IntegerColumn(*frame.origin.fibermap, name);
    if (all.ok()) table->Add(name, targets, [&](int row) { return (*all)[row]; });
  }
  for (const char* name : {"TARGET_RA", "TARGET_DEC"}) {
    const absl::StatusOr<std::vector<double>> all = NumberColumn(*frame.origin.fibermap, name);
    if (all.ok())
      table->Add(
          name, targets, [&](int row) { return (*all)[row]; }, "deg");
  }
  table->Add("ROW", targets, [](int row) { return int64_t{row}; });
}

// Begins a file with a table, and the frame's origin in its primary header.
void AddTable(const Frame& frame, const NumberTable& table, const char* hdu, FitsBuilder* fits) {
  fits->BeginImage("PRIMARY", FLOAT_IMG, {});
  WriteOrigin(frame.origin, false, *fits);
  table.Write(hdu, fits);
  const bool barycentric = frame.origin.heliocentric_factor.has_value();
  fits->Text("SPECSYS", barycentric ? "BARYCENT" : "TOPOCENT", "velocities and redshifts are so");
}

// HDU LINES: what is looked for, the names of groups in the header.
void AddLineNames(FitsBuilder* fits) {
  std::vector<double> waves, ratios;
  std::vector<int64_t> numbers;
  const std::vector<LineGroup>& groups = EmissionLines();
  for (size_t g = 0; g < groups.size(); ++g) {
    for (const Line& line : groups[g].lines) {
      waves.push_back(line.wave);
      ratios.push_back(line.ratio);
      numbers.push_back(static_cast<int64_t>(g));
    }
  }
  NumberTable table(static_cast<int64_t>(waves.size()));
  table.Add("WAVE", waves, "Angstrom");
  table.Add("RATIO", ratios);
  table.Add("GROUP", numbers);
  table.Write("LINES", fits);
  for (size_t g = 0; g < groups.size(); ++g) {
    fits->Text(absl::StrCat("GROUP", g).c_str(), groups[g].name, "");
  }
}

// An image HDU with a row for each star; NaN for stars without it.
void AddRows(const char* name, const std::vector<StarVelocity>& stars,
             const std::vector<double> StarVelocity::*values, int64_t size, FitsBuilder* fits) {
  const int64_t rows = static_cast<int64_t>(stars.size());
  Array<float, 2> image({rows, size}, std::numeric_limits<float>::quiet_NaN());
  for (int64_t k = 0; k < rows; ++k) {
    const std::vector<double>& row = stars[static_cast<size_t>(k)].*values;
    std::transform(row.begin(), row.end(), image.Row(k).begin(),
                   [](double value) { return static_cast<float>(value); });
  }
  fits->BeginImage(name, FLOAT_IMG, {rows, size});
  fits->Pixels(image.flat());
}

}  // namespace

absl::Status WriteSky(const Frame& frame, const Sky& sky, const std::string& path) {
  const int64_t fibres = sky.model.shape(0), bins = sky.model.shape(1);
  FitsBuilder fits(4 * 4 * sky.model.size() + (1 << 20));
  AddImage("SKY", sky.model, &fits);
  WriteOrigin(frame.origin, false, fits);
  fits.Text("BUNIT", "electron/Angstrom", "unit of SKY");
  fits.Integer("SKYROUND", sky.rounds, "rounds of rejection");
  fits.Integer("SKYREJ", sky.rejected, "bins of sky fibres that were rejected");
  fits.Integer("SKYFIB", static_cast<int64_t>(sky.sky_fibres.size()), "sky fibres used");
  AddImage("IVAR", SkyModelIvar(sky), &fits);
  fits.BeginImage("MASK", ULONG_IMG, {fibres, bins});
  fits.Pixels(SkyModelMask(sky).flat());
  fits.BeginImage("WAVELENGTH", DOUBLE_IMG, {bins});
  fits.Text("BUNIT", "Angstrom", "vacuum");
  fits.Pixels(absl::MakeConstSpan(frame.grid.Values()));
  AddImage("STATIVAR", sky.statistical_ivar, &fits);
  fits.BeginImage("THRPUTCORR", FLOAT_IMG, {fibres});
  const std::vector<float> throughput(sky.throughput.begin(), sky.throughput.end());
  fits.Pixels(absl::MakeConstSpan(throughput));
  fits.BeginImage("DECONVOLVED", DOUBLE_IMG, {bins});
  fits.Text("BUNIT", "electron/Angstrom", "the sky before any resolution");
  fits.Pixels(absl::MakeConstSpan(sky.deconvolved));
  return fits.Write(path);
}

Array<double, 2> SkyModelIvar(const Sky& sky) {
  Array<double, 2> ivar(sky.model.shape());
  std::transform(sky.model_variance.flat().begin(), sky.model_variance.flat().end(), ivar.flat().begin(),
                 [](double variance) { return variance > 0 ? 1 / variance : 0; });
  return ivar;
}

Array<uint32_t, 2> SkyModelMask(const Sky& sky) {
  Array<uint32_t, 2> mask(sky.mask.shape());
  std::transform(sky.mask.flat().begin(), sky.mask.flat().end(), mask.flat().begin(),
                 [](uint32_t bits) { return bits & kMaskBadSky; });
  return mask;
}

Frame SkySubtracted(Frame frame, const Sky& sky) {
  frame.spectra.flux = Rounded(sky.flux);
  frame.spectra.ivar = Rounded(sky.ivar);
  frame.spectra.mask = sky.mask;
  return frame;
}

NumberTable VelocityTable(const Frame& frame, const std::vector<int>& targets,
                          const std::vector<StarVelocity>& velocities,
                          const std::vector<std::string>& parameters) {
  NumberTable table(static_cast<int64_t>(targets.size()));
  AddTargets(frame, targets, &table);
  constexpr char kVelocityUnit[] = "km/s";
  const auto add = [&](const char* name, const auto& value, const auto&... unit) {
    table.Add(name, velocities, value, unit...);
  };
  add(
      "VRAD", [](const StarVelocity& star) { return star.v; }, kVelocityUnit);
  add(
      "VRAD_ERR", [](const StarVelocity& star) { return star.error; }, kVelocityUnit);
  add(
      "VRAD_ERR_COND", [](const StarVelocity& star) { return star.conditional_error; }, kVelocityUnit);
  for (size_t k = 0; k < parameters.size(); ++k) {
    const std::string name = absl::AsciiStrToUpper(parameters[k]);
    const std::string unit = name == "TEFF" ? "K" : "";
    table.Add(
        name, velocities, [k](const StarVelocity& star) { return star.parameters[k]; }, unit);
    table.Add(
        absl::StrCat(name, "_ERR"), velocities,
        [k](const StarVelocity& star) { return star.parameter_errors[k]; }, unit);
  }
  add(
      "VSINI", [](const StarVelocity& star) { return star.vsini; }, kVelocityUnit);
  add("CHISQ_TOT", [](const StarVelocity& star) { return star.chi2; });
  add("CHISQ_C_TOT", [](const StarVelocity& star) { return star.continuum_chi2; });
  add("NBIN", [](const StarVelocity& star) { return int64_t{star.bins}; });
  add("DCHI2", [](const StarVelocity& star) { return star.dchi2; });
  add(
      "V2", [](const StarVelocity& star) { return star.v2; }, kVelocityUnit);
  add("RVS_WARN", [](const StarVelocity& star) { return int64_t{star.flag}; });
  return table;
}

absl::Status WriteVelocities(const Frame& frame, const std::vector<int>& targets,
                             const std::vector<StarVelocity>& velocities,
                             const std::vector<std::string>& parameters, const VelocityOptions& options,
                             const std::string& path) {
  const int64_t bins = frame.grid.count;
  const std::vector<double> scanned = ScannedVelocities(options);
  FitsBuilder fits(8 * static_cast<int64_t>(targets.size()) * (bins + scanned.size()) + (1 << 20));
  AddTable(frame, VelocityTable(frame, targets, velocities, parameters), "RVTAB", &fits);
  AddRows("MODEL", velocities, &StarVelocity::model, bins, &fits);
  fits.Text("BUNIT", "electron/Angstrom", "best template times its continuum");
  AddRows("CONTINUUM", velocities, &StarVelocity::continuum, bins, &fits);
  fits.BeginImage("WAVELENGTH", DOUBLE_IMG, {bins});
  fits.Text("BUNIT", "Angstrom", "vacuum");
  fits.Pixels(absl::MakeConstSpan(frame.grid.Values()));
  AddRows("CHI2", velocities, &StarVelocity::scan, static_cast<int64_t>(scanned.size()), &fits);
  fits.BeginImage("VELOCITY", DOUBLE_IMG, {static_cast<int64_t>(scanned.size())});
  fits.Text("BUNIT", "km/s", "of CHI2");
  fits.Pixels(absl::MakeConstSpan(scanned));
  return fits.Write(path);
}

NumberTable RedshiftTable(const Frame& frame, const std::vector<int>& targets,
                          const std::vector<LineRedshift>& lines) {
  NumberTable table(static_cast<int64_t>(targets.size()));
  AddTargets(frame, targets, &table);
  const auto add = [&](const char* name, const auto& value) { table.Add(name, lines, value); };
  add("Z", [](const LineRedshift& line) { return line.z; });
  add("ZERR", [](const LineRedshift& line) { return line.error; });
  add("ZWARN", [](const LineRedshift& line) { return int64_t{line.warning}; });
  add("DCHI2", [](const LineRedshift& line) { return line.dchi2; });
  add("SNR", [](const LineRedshift& line) { return std::sqrt(line.dchi2); });
  add("GAP", [](const LineRedshift& line) { return line.gap; });
  add("Z2", [](const LineRedshift& line) { return line.z2; });
  add("NLINES", [](const LineRedshift& line) { return int64_t{line.lines}; });
  return table;
}

absl::Status WriteLines(const Frame& frame, const std::vector<int>& targets,
                        const std::vector<LineRedshift>& lines, const std::string& path) {
  FitsBuilder fits(1 << 20);
  AddTable(frame, RedshiftTable(frame, targets, lines), "ZLINES", &fits);
  AddLineNames(&fits);
  return fits.Write(path);
}

}  // namespace spexd
