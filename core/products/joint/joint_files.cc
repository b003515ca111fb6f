#include "core/products/joint/joint_files.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <initializer_list>
#include <limits>
#include <set>
#include <unordered_set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "core/base/array.h"
#include "core/base/status_macros.h"
#include "core/fits/hdu/cards.h"
#include "core/fits/hdu/fits_builder.h"
#include "core/fits/hdu/table_file.h"
#include "core/products/joint/row_selection.h"
#include "core/products/number_table.h"
#include "core/products/result_columns.h"

namespace spexd {
namespace {

constexpr char kKilometres[] = "km s-1";  // the spelling of rvs_desi_fit

// A file that begins with the cards of the spectra. It owns the images, which are read when the file ends.
class FileOfSpectra {
 public:
  explicit FileOfSpectra(const TargetSpectra& spectra) : fits_(1 << 20) {
    fits_.BeginImage("PRIMARY", FLOAT_IMG, {});
    const std::vector<std::string> cards = FilterCards(spectra.cards, [](absl::string_view card) {
      return !IsStructuralCard(card) && !IsWorldCoordinateCard(card);
    });
    fits_.AnnounceLongTexts({}, std::any_of(cards.begin(), cards.end(), [](const std::string& card) {
                              return CardKeyword(card) == "CONTINUE";
                            }));
    fits_.Cards(cards);
  }

  // Adds a table of results. SPECSYS states the frame of reference of velocities and redshifts, which is that
  // of the wavelengths.
  void AddResults(const char* hdu, const NumberTable& table, bool barycentric) {
    table.Write(hdu, &fits_);
    fits_.Text("SPECSYS", barycentric ? "BARYCENT" : "TOPOCENT", "velocities and redshifts are so");
  }
  void AddAxis(const std::string& name, std::vector<double> values, const char* unit, const char* comment) {
    axes_.push_back(std::move(values));
    fits_.BeginImage(name, DOUBLE_IMG, {static_cast<int64_t>(axes_.back().size())});
    fits_.Text("BUNIT", unit, comment);
    fits_.Pixels(absl::MakeConstSpan(axes_.back()));
  }
  // Adds an image with a row for each target.
  void AddRows(const std::string& name, Array<float, 2> values) {
    images_.push_back(std::move(values));
    const Array<float, 2>& image = images_.back();
    fits_.BeginImage(name, FLOAT_IMG, {image.shape(0), image.shape(1)});
    fits_.LatePixels(image.flat());
  }
  FitsBuilder& fits() { return fits_; }

 private:
  std::deque<std::vector<double>> axes_;
  std::deque<Array<float, 2>> images_;
  FitsBuilder fits_;
};

// The first row of each target.
std::vector<int> FirstRows(const JointProducts& products) {
  std::vector<int> rows;
  for (const std::vector<int>& target : products.targets) rows.push_back(target.front());
  return rows;
}

// Copies columns of the fibermap unchanged. Columns that it lacks are left out, and so is EXPID if results
// combine several exposures.
void CopyColumns(const TargetSpectra& spectra, const JointProducts& products,
                 std::initializer_list<const char*> names, NumberTable* table) {
  const bool joined = std::any_of(products.targets.begin(), products.targets.end(),
                                  [](const std::vector<int>& target) { return target.size() > 1; });
  const std::vector<int> rows = FirstRows(products);
  for (const char* name : names) {
    if (joined && absl::string_view(name) == "EXPID") continue;
    const absl::StatusOr<RawColumn> column = CopyColumn(spectra.fibermap, name);
    if (column.ok()) table->Copy(name, *column, rows);
  }
}

// A star's values in a part; NaN and no bins if it has none there.
const ArmVelocity& ArmOf(const StarVelocity& star, size_t part) {
  constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
  static const ArmVelocity kNone = [] {
    ArmVelocity none;
    none.v = none.error = kNaN;
    return none;
  }();
  return part < star.arms.size() ? star.arms[part] : kNone;
}

void AddPartColumns(const std::vector<StarVelocity>& stars, const std::string& name, size_t part,
                    NumberTable* table) {
  const auto add = [&](const char* stem, const auto& value, const auto&... unit) {
    table->Add(
        absl::StrCat(stem, name), stars,
        [&value, part](const StarVelocity& star) { return value(ArmOf(star, part)); }, unit...);
  };
  add("CHISQ_", [](const ArmVelocity& arm) { return arm.chi2; });
  add("CHISQ_C_", [](const ArmVelocity& arm) { return arm.continuum_chi2; });
  add("NPIX_", [](const ArmVelocity& arm) { return int64_t{arm.bins}; });
  add(
      "VRAD_", [](const ArmVelocity& arm) { return arm.v; }, kKilometres);
  add(
      "VRAD_ERR_", [](const ArmVelocity& arm) { return arm.error; }, kKilometres);
}

// Adds the S/N of each target's first row in each part.
void AddSnr(const TargetSpectra& spectra, const JointProducts& products, NumberTable* table) {
  const std::vector<int> rows = FirstRows(products);
  const std::vector<std::string> names = PartNames(products);
  for (size_t k = 0; k < names.size(); ++k) {
    const ArmPart& part = products.parts[k];
    const std::vector<double> snr =
        MedianSnr(spectra, spectra.arms[part.arm], part.name, part.kept_first, part.kept_end);
    table->Add(absl::StrCat("SN_", names[k]), rows,
               [&snr](int row) { return static_cast<float>(snr[static_cast<size_t>(row)]); });
  }
}

// The rows of the targets' exposures; all rows if the tables do not state the targets.
RawTable ExposuresOf(const RawTable& exposures, const RawTable& fibermap, const std::vector<int>& rows) {
  const absl::StatusOr<std::vector<int64_t>> targets = IntegerColumn(fibermap, "TARGETID");
  const absl::StatusOr<std::vector<int64_t>> of_exposures = IntegerColumn(exposures, "TARGETID");
  if (!targets.ok() || !of_exposures.ok()) return exposures;
  std::unordered_set<int64_t> wanted;
  for (const int row : rows) wanted.insert((*targets)[static_cast<size_t>(row)]);
  std::vector<int> kept;
  for (size_t row = 0; row < of_exposures->size(); ++row)
    if (wanted.count((*of_exposures)[row]) > 0) kept.push_back(static_cast<int>(row));
  return RowsOf(exposures, kept);
}

void Fill(const std::vector<double>& values, absl::Span<float> row) {
  const size_t count = std::min(values.size(), row.size());
  std::transform(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(count), row.begin(),
                 [](double value) { return static_cast<float>(value); });
}

// An image of a row for each star; NaN for stars without one.
template <typename RowOf>
Array<float, 2> RowsOfStars(const std::vector<StarVelocity>& stars, size_t size, const RowOf& row_of) {
  Array<float, 2> image({static_cast<int64_t>(stars.size()), static_cast<int64_t>(size)},
                        std::numeric_limits<float>::quiet_NaN());
  for (size_t k = 0; k < stars.size(); ++k) Fill(row_of(stars[k]), image.Row(static_cast<int64_t>(k)));
  return image;
}

}  // namespace

std::vector<std::string> PartNames(const JointProducts& products) {
  std::vector<std::string> names;
  std::set<std::string> taken;
  for (const ArmPart& part : products.parts) {
    std::string name = part.name;
    for (int number = 2; !taken.insert(name).second; ++number) name = absl::StrCat(part.name, number);
    names.push_back(std::move(name));
  }
  return names;
}

NumberTable JointVelocityTable(const TargetSpectra& spectra, const JointProducts& products,
                               const std::vector<std::string>& parameters,
                               const std::optional<RedrockTable>& redrock) {
  const std::vector<StarVelocity>& stars = *products.velocities;
  const std::vector<std::string> names = PartNames(products);
  NumberTable table(static_cast<int64_t>(products.targets.size()));
  const VelocityColumns columns{stars, kKilometres};
  columns.AddVelocity(&table);
  columns.AddRotation(&table);
  columns.AddParameters(parameters, &table);
  columns.AddChiSquares("NPIX_TOT", &table);
  for (size_t k = 0; k < names.size(); ++k) AddPartColumns(stars, names[k], k, &table);
  columns.AddAmbiguity(&table);
  columns.AddWarning(&table);
  CopyColumns(spectra, products,
              {"FIBER", "REF_ID", "REF_CAT", "TARGET_RA", "TARGET_DEC", "TARGETID", "EXPID"}, &table);
  table.Add("NUMEXP", products.targets,
            [](const std::vector<int>& target) { return static_cast<int32_t>(target.size()); });
  AddSnr(spectra, products, &table);
  table.Add("SUCCESS", stars, [](const StarVelocity& star) { return star.flag == 0; });
  if (!redrock.has_value()) return table;
  const std::vector<int> rows = FirstRows(products);
  const auto add = [&](const char* name, const auto& of_rows) {
    table.Add(name, rows, [&of_rows](int row) { return of_rows[static_cast<size_t>(row)]; });
  };
  add("RR_Z", redrock->z);
  add("RR_SPECTYPE", redrock->spectype);
  add("RR_SUBTYPE", redrock->subtype);
  return table;
}

Array<float, 2> JointModels(const TargetSpectra& spectra, const JointProducts& products, size_t arm) {
  const std::vector<StarVelocity>& stars = *products.velocities;
  Array<float, 2> image({static_cast<int64_t>(stars.size()), spectra.arms[arm].grid.count},
                        std::numeric_limits<float>::quiet_NaN());
  for (size_t p = 0; p < products.parts.size(); ++p) {
    const ArmPart& part = products.parts[p];
    if (part.arm != arm) continue;
    for (size_t k = 0; k < stars.size(); ++k) {
      const std::vector<double>& model = ArmOf(stars[k], p).model;
      const int64_t end = std::min({part.kept_end, part.first + static_cast<int64_t>(model.size()),
                                    int64_t{spectra.arms[arm].grid.count}});
      for (int64_t bin = part.kept_first; bin < end; ++bin)
        image(static_cast<int64_t>(k), bin) =
            static_cast<float>(model[static_cast<size_t>(bin - part.first)]);
    }
  }
  return image;
}

NumberTable JointLineTable(const TargetSpectra& spectra, const JointProducts& products) {
  NumberTable table(static_cast<int64_t>(products.targets.size()));
  CopyColumns(spectra, products, {"TARGETID", "FIBER", "EXPID", "TARGET_RA", "TARGET_DEC"}, &table);
  AddLineColumns(*products.lines, &table);
  return table;
}

absl::StatusOr<std::string> JointVelocityFile(const TargetSpectra& spectra, const JointProducts& products,
                                              const std::vector<std::string>& parameters,
                                              const VelocityOptions& options,
                                              const std::optional<RedrockTable>& redrock, int threads) {
  const std::vector<StarVelocity>& stars = *products.velocities;
  const std::vector<int> rows = FirstRows(products);
  FileOfSpectra file(spectra);
  file.AddResults("RVTAB", JointVelocityTable(spectra, products, parameters, redrock), spectra.barycentric);
  file.fits().AddRawTable(RowsOf(spectra.fibermap, rows));
  if (spectra.scores.has_value()) file.fits().AddRawTable(RowsOf(*spectra.scores, rows));
  if (spectra.exposures.has_value())
    file.fits().AddRawTable(ExposuresOf(*spectra.exposures, spectra.fibermap, rows));
  const std::vector<double> scanned = ScannedVelocities(options);
  file.AddAxis("VELOCITY", scanned, kKilometres, "of CHI2");
  file.AddRows("CHI2",
               RowsOfStars(
                   stars, scanned.size(), [](const StarVelocity& star) -> const auto& { return star.scan; }));
  const std::vector<std::string> names = PartNames(products);
  for (size_t part = 0; part < names.size(); ++part) {
    file.AddRows(absl::StrCat(names[part], "_CHI2"),
                 RowsOfStars(
                     stars, scanned.size(), [part](const StarVelocity& star) -> const auto& {
                       return ArmOf(star, part).scan;
                     }));
  }
  return file.fits().Bytes(threads);
}

absl::StatusOr<std::string> JointModelFile(const TargetSpectra& spectra, const JointProducts& products,
                                           int threads) {
  FileOfSpectra file(spectra);
  for (size_t arm = 0; arm < spectra.arms.size(); ++arm) {
    const SpectraArm& of = spectra.arms[arm];
    file.AddAxis(absl::StrCat(of.name, "_WAVELENGTH"), of.grid.Values(), "Angstrom", "vacuum");
    file.AddRows(absl::StrCat(of.name, "_MODEL"), JointModels(spectra, products, arm));
  }
  file.fits().AddRawTable(RowsOf(spectra.fibermap, FirstRows(products)));
  return file.fits().Bytes(threads);
}

absl::StatusOr<std::string> JointLineFile(const TargetSpectra& spectra, const JointProducts& products,
                                          int threads) {
  FileOfSpectra file(spectra);
  file.AddResults("ZLINES", JointLineTable(spectra, products), spectra.barycentric);
  WriteLineNames(&file.fits());
  return file.fits().Bytes(threads);
}

}  // namespace spexd
