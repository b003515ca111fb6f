#include "python/native/products/columns.h"

#include <nanobind/ndarray.h>
#include <nanobind/stl/string.h>

#include <string>

#include "absl/strings/str_format.h"
#include "python/native/text.h"

namespace nb = nanobind;

namespace spexd::python {
namespace {

template <typename Value, typename From>
nb::object ArrayFrom(const std::vector<From>& values) {
  Array<Value, 1> copy({static_cast<int64_t>(values.size())});
  std::transform(values.begin(), values.end(), copy.flat().begin(),
                 [](From value) { return static_cast<Value>(value); });
  return nb::cast(Given(std::move(copy)));
}

nb::tuple CellsOf(const NumberTable::Column& column) {
  std::string bytes;
  std::vector<std::string> cards;
  for (const std::string& cell : column.raw.cells) bytes += cell;
  for (const auto& [stem, rest] : column.raw.cards) cards.push_back(absl::StrFormat("%-8s%s", stem, rest));
  return nb::make_tuple(column.form, column.raw.cells.size(), nb::bytes(bytes.data(), bytes.size()),
                        Latin1Of(cards));
}

nb::tuple TextsOf(const NumberTable::Column& column) {
  const auto width = static_cast<size_t>(std::stoll(column.form));
  std::string bytes;
  for (std::string text : column.texts) {
    text.resize(width, ' ');
    bytes += text;
  }
  return nb::make_tuple(column.form, column.texts.size(), nb::bytes(bytes.data(), bytes.size()), nb::list());
}

nb::object ValuesOfColumn(const NumberTable::Column& column) {
  if (column.raw.width > 0) return CellsOf(column);
  if (column.form == "1K") return ArrayFrom<int64_t>(column.integers);
  if (column.form == "1J") return ArrayFrom<int32_t>(column.integers);
  if (column.form == "1E") return ArrayFrom<float>(column.numbers);
  if (column.form == "1D") return ArrayFrom<double>(column.numbers);
  return TextsOf(column);
}

}  // namespace

nb::list ColumnsOf(const NumberTable& table) {
  nb::list columns;
  for (const NumberTable::Column& column : table.columns())
    columns.append(nb::make_tuple(column.name, ValuesOfColumn(column)));
  return columns;
}

}  // namespace spexd::python
