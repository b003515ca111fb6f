#include "core/products/product_files.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "absl/strings/str_format.h"
#include "absl/strings/string_view.h"
#include "core/analysis/usable_spectra.h"
#include "core/base/status_macros.h"
#include "core/fits/frame_header.h"
#include "core/fits/hdu/cards.h"
#include "core/fits/hdu/fits_builder.h"
#include "core/fits/hdu/table_file.h"
#include "core/fits/readers.h"
#include "core/products/number_table.h"
#include "core/products/result_columns.h"

namespace spexd {
namespace {

constexpr char kSkyCard[] = "IN_SKY";  // the pipeline's card in frames without sky

Array<float, 2> Rounded(const Array<double, 2>& values) {
  Array<float, 2> rounded(values.shape());
  std::transform(values.flat().begin(), values.flat().end(), rounded.flat().begin(),
                 [](double value) { return static_cast<float>(value); });
  return rounded;
}

// Adds an image HDU. The pixels must outlive the builder.
void AddImage(const char* name, const Array<float, 2>& values, FitsBuilder* fits) {
  fits->BeginImage(name, FLOAT_IMG, {values.shape(0), values.shape(1)});
  fits->LatePixels(values.flat());
}

// Adds the fibermap's columns of the targets. Columns that it lacks are left out.
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

// Begins a file with the frame's origin in its primary header, and adds a table.
void AddTable(const Frame& frame, const NumberTable& table, const char* hdu, FitsBuilder* fits) {
  fits->BeginImage("PRIMARY", FLOAT_IMG, {});
  WriteOrigin(frame.origin, false, *fits);
  table.Write(hdu, fits);
  const bool barycentric = frame.origin.heliocentric_factor.has_value();
  fits->Text("SPECSYS", barycentric ? "BARYCENT" : "TOPOCENT", "velocities and redshifts are so");
}

// Values of a star in its only arm; empty without data.
const std::vector<double>& OfArm(const StarVelocity& star, std::vector<double> ArmVelocity::*values) {
  static const std::vector<double> kNone;
  return star.arms.empty() ? kNone : star.arms[0].*values;
}

// An image with a row for each star; NaN for stars without one.
template <typename RowOf>
Array<float, 2> RowsOf(const std::vector<StarVelocity>& stars, const RowOf& row_of, int64_t size) {
  const int64_t rows = static_cast<int64_t>(stars.size());
  Array<float, 2> image({rows, size}, std::numeric_limits<float>::quiet_NaN());
  for (int64_t k = 0; k < rows; ++k) {
    const std::vector<double>& row = row_of(stars[static_cast<size_t>(k)]);
    std::transform(row.begin(), row.end(), image.Row(k).begin(),
                   [](double value) { return static_cast<float>(value); });
  }
  return image;
}

}  // namespace

absl::Status WriteSky(const Frame& frame, const Sky& sky, const std::string& path, int threads) {
  const int64_t fibres = sky.model.shape(0), bins = sky.model.shape(1);
  const Array<float, 2> model = Rounded(sky.model), ivar = Rounded(SkyModelIvar(sky)),
                        statistical_ivar = Rounded(sky.statistical_ivar);
  const Array<uint32_t, 2> mask = SkyModelMask(sky);
  FitsBuilder fits(8 * 3 * bins + (1 << 20));
  AddImage("SKY", model, &fits);
  WriteOrigin(frame.origin, false, fits);
  fits.Text("BUNIT", "electron/Angstrom", "unit of SKY");
  fits.Integer("SKYROUND", sky.rounds, "rounds of rejection");
  fits.Integer("SKYREJ", sky.rejected, "bins of sky fibres that were rejected");
  fits.Integer("SKYFIB", static_cast<int64_t>(sky.sky_fibres.size()), "sky fibres used");
  AddImage("IVAR", ivar, &fits);
  fits.BeginImage("MASK", ULONG_IMG, {fibres, bins});
  fits.LatePixels(mask.flat());
  fits.BeginImage("WAVELENGTH", DOUBLE_IMG, {bins});
  fits.Text("BUNIT", "Angstrom", "vacuum");
  fits.Pixels(absl::MakeConstSpan(frame.grid.Values()));
  AddImage("STATIVAR", statistical_ivar, &fits);
  fits.BeginImage("THRPUTCORR", FLOAT_IMG, {fibres});
  const std::vector<float> throughput(sky.throughput.begin(), sky.throughput.end());
  fits.Pixels(absl::MakeConstSpan(throughput));
  fits.BeginImage("DECONVOLVED", DOUBLE_IMG, {bins});
  fits.Text("BUNIT", "electron/Angstrom", "the sky before any resolution");
  fits.Pixels(absl::MakeConstSpan(sky.deconvolved));
  return fits.Write(path, threads);
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
  std::vector<std::string>& cards = frame.origin.image_cards;
  cards = FilterCards(cards, [](absl::string_view card) { return CardKeyword(card) != kSkyCard; });
  cards.push_back(
      absl::StrFormat("%-80s", absl::StrFormat("%-8s= '%-8s' / sky that was subtracted", kSkyCard, "spexd")));
  return frame;
}

NumberTable VelocityTable(const Frame& frame, const std::vector<int>& targets,
                          const std::vector<StarVelocity>& velocities,
                          const std::vector<std::string>& parameters) {
  NumberTable table(static_cast<int64_t>(targets.size()));
  AddTargets(frame, targets, &table);
  const VelocityColumns columns{velocities, "km/s"};
  columns.AddVelocity(&table);
  columns.AddParameters(parameters, &table);
  columns.AddRotation(&table);
  columns.AddChiSquares("NBIN", &table);
  columns.AddAmbiguity(&table);
  columns.AddWarning(&table);
  return table;
}

absl::Status WriteVelocities(const Frame& frame, const std::vector<int>& targets,
                             const std::vector<StarVelocity>& velocities,
                             const std::vector<std::string>& parameters, const VelocityOptions& options,
                             const std::string& path, int threads) {
  const int64_t bins = frame.grid.count;
  const std::vector<double> scanned = ScannedVelocities(options);
  const auto of_arm = [](std::vector<double> ArmVelocity::*values) {
    return [values](const StarVelocity& star) -> const std::vector<double>& { return OfArm(star, values); };
  };
  const Array<float, 2> models = RowsOf(velocities, of_arm(&ArmVelocity::model), bins),
                        continua = RowsOf(velocities, of_arm(&ArmVelocity::continuum), bins),
                        scans = RowsOf(
                            velocities,
                            [](const StarVelocity&star) -> const std::vector<double>& { return star.scan; },
                            static_cast<int64_t>(scanned.size()));
  FitsBuilder fits(8 * (bins + static_cast<int64_t>(scanned.size())) + (1 << 20));
  AddTable(frame, VelocityTable(frame, targets, velocities, parameters), "RVTAB", &fits);
  AddImage("MODEL", models, &fits);
  fits.Text("BUNIT", "electron/Angstrom", "best template times its continuum");
  AddImage("CONTINUUM", continua, &fits);
  fits.BeginImage("WAVELENGTH", DOUBLE_IMG, {bins});
  fits.Text("BUNIT", "Angstrom", "vacuum");
  fits.Pixels(absl::MakeConstSpan(frame.grid.Values()));
  AddImage("CHI2", scans, &fits);
  fits.BeginImage("VELOCITY", DOUBLE_IMG, {static_cast<int64_t>(scanned.size())});
  fits.Text("BUNIT", "km/s", "of CHI2");
  fits.Pixels(absl::MakeConstSpan(scanned));
  return fits.Write(path, threads);
}

NumberTable RedshiftTable(const Frame& frame, const std::vector<int>& targets,
                          const std::vector<LineRedshift>& lines) {
  NumberTable table(static_cast<int64_t>(targets.size()));
  AddTargets(frame, targets, &table);
  AddLineColumns(lines, &table);
  return table;
}

absl::Status WriteLines(const Frame& frame, const std::vector<int>& targets,
                        const std::vector<LineRedshift>& lines, const std::string& path) {
  FitsBuilder fits(1 << 20);
  AddTable(frame, RedshiftTable(frame, targets, lines), "ZLINES", &fits);
  WriteLineNames(&fits);
  return fits.Write(path);
}

}  // namespace spexd
