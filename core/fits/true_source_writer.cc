#include "core/fits/true_source_writer.h"

#include <cstdint>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "core/base/array.h"
#include "core/fits/hdu/fits_builder.h"

namespace spexd {
namespace {

const char* NameOf(SourceKind kind) {
  switch (kind) {
    case SourceKind::kSky:
      return "SKY";
    case SourceKind::kStar:
      return "STAR";
    case SourceKind::kEmitter:
      return "GALAXY";
  }
  return "";
}

struct SourceColumn {
  std::string name, unit;
  std::vector<double> values;
};

std::vector<SourceColumn> NumberColumns(const TrueSources& sources) {
  std::vector<SourceColumn> columns;
  const auto add = [&](std::string name, const char* unit, const auto& value) {
    SourceColumn& column = columns.emplace_back(SourceColumn{std::move(name), unit, {}});
    for (const TrueSource& source : sources.fibres) column.values.push_back(value(source));
  };
  // A source of another kind has an empty list.
  const auto item = [](const std::vector<double>& list, size_t k) { return k < list.size() ? list[k] : NAN; };
  add("THROUGHPUT", "", [](const TrueSource& source) { return source.throughput; });
  add("FLAT", "", [](const TrueSource& source) { return source.flat; });
  add("FRINGEPHASE", "rad", [](const TrueSource& source) { return source.fringe_phase; });
  add("LEVEL", "electron/Angstrom", [](const TrueSource& source) { return source.level; });
  add("VRAD", "km/s", [](const TrueSource& source) { return source.velocity; });
  add("VSINI", "km/s", [](const TrueSource& source) { return source.vsini; });
  for (size_t k = 0; k < sources.parameters.size(); ++k) {
    add(absl::AsciiStrToUpper(sources.parameters[k]), "",
        [&](const TrueSource& source) { return item(source.parameters, k); });
  }
  add("Z", "", [](const TrueSource& source) { return source.z; });
  add("LINESIGMA", "km/s", [](const TrueSource& source) { return source.line_sigma; });
  for (size_t k = 0; k < sources.lines.size(); ++k) {
    add(absl::StrCat("FLUX_", sources.lines[k]), "electron",
        [&](const TrueSource& source) { return item(source.line_fluxes, k); });
  }
  return columns;
}

}  // namespace

absl::Status WriteTrueSources(const TrueSources& sources, const std::string& path) {
  const std::vector<SourceColumn> columns = NumberColumns(sources);
  std::vector<std::string> names = {"TARGETID", "FIBER", "OBJTYPE"}, forms = {"1K", "1J", "6A"};
  for (const SourceColumn& column : columns) {
    names.push_back(column.name);
    forms.push_back("1D");
  }
  FitsBuilder fits(1 << 20);
  fits.BeginImage("PRIMARY", FLOAT_IMG, {});
  fits.BeginTable("TRUTH", static_cast<int64_t>(sources.fibres.size()), names, forms);
  for (size_t k = 0; k < columns.size(); ++k) {
    if (!columns[k].unit.empty()) fits.Text(absl::StrCat("TUNIT", k + 4).c_str(), columns[k].unit, "");
  }
  std::vector<int64_t> ids, numbers;
  for (const TrueSource& source : sources.fibres) {
    numbers.push_back(static_cast<int64_t>(ids.size()));
    ids.push_back(source.target_id);
    fits.ColumnText(3, static_cast<int64_t>(ids.size()), NameOf(source.kind));
  }
  fits.ColumnValues(1, 1, absl::MakeConstSpan(ids));
  fits.ColumnValues(2, 1, absl::MakeConstSpan(numbers));
  for (size_t k = 0; k < columns.size(); ++k) {
    fits.ColumnValues(static_cast<int>(k) + 4, 1, absl::MakeConstSpan(columns[k].values));
  }
  return fits.Write(path);
}

absl::Status WriteTrueFiberflat(const TrueSources& sources, const WavelengthGrid& grid,
                                const std::string& camera, const std::string& path) {
  const int64_t fibres = static_cast<int64_t>(sources.fibres.size());
  Array<float, 2> flat({fibres, grid.count});
  for (int64_t i = 0; i < fibres; ++i) {
    const TrueSource& source = sources.fibres[static_cast<size_t>(i)];
    for (int64_t j = 0; j < grid.count; ++j)
      flat(i, j) = static_cast<float>(source.flat * FringesAt(source, grid.Wave(static_cast<int>(j))));
  }
  // A measured flat has errors, bad pixels and the spectrum of its lamp, and the pipeline reads them. This
  // flat is exact: its relative error of 1e-6 is far below those of spectra.
  const Array<float, 2> ivar({fibres, grid.count}, 1e12f);
  const Array<uint32_t, 2> mask({fibres, grid.count}, 0);
  const std::vector<float> lamp(static_cast<size_t>(grid.count), 1.0f);
  FitsBuilder fits(12 * flat.size() + (1 << 20));
  fits.BeginImage("FIBERFLAT", FLOAT_IMG, {fibres, grid.count});
  fits.Text("CAMERA", camera, "of the frames that it is for");
  fits.Pixels(flat.flat());
  fits.BeginImage("IVAR", FLOAT_IMG, {fibres, grid.count});
  fits.Pixels(ivar.flat());
  fits.BeginImage("MASK", ULONG_IMG, {fibres, grid.count});
  fits.Pixels(mask.flat());
  fits.BeginImage("MEANSPEC", FLOAT_IMG, {grid.count});
  fits.Pixels(absl::MakeConstSpan(lamp));
  fits.BeginImage("WAVELENGTH", DOUBLE_IMG, {grid.count});
  fits.Text("BUNIT", "Angstrom", "vacuum");
  fits.Pixels(absl::MakeConstSpan(grid.Values()));
  return fits.Write(path);
}

}  // namespace spexd
