#include "core/products/number_table.h"

#include <algorithm>
#include <cstddef>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "core/fits/hdu/table.h"

namespace spexd {
namespace {

// The bytes of a cell.
int64_t WidthOf(const NumberTable::Column& column) {
  if (column.raw.width > 0) return column.raw.width;
  if (!column.texts.empty() || column.form.back() == 'A') return std::stoll(column.form);
  return ElementBytes(column.form.back());
}

// Writes the cards that describe a column. `number`: its number in the table, from 1.
void WriteCards(const NumberTable::Column& column, size_t number, FitsBuilder* fits) {
  if (!column.unit.empty()) fits->Text(absl::StrCat("TUNIT", number).c_str(), column.unit, "");
  for (const auto& [stem, rest] : column.raw.cards)
    fits->Cards({absl::StrFormat("%-8s%s", absl::StrCat(stem, number), rest)});
}

}  // namespace

void NumberTable::Add(std::string name, std::vector<std::string> values) {
  size_t longest = 1;
  for (const std::string& value : values) longest = std::max(longest, value.size());
  columns_.push_back(
      {.name = std::move(name), .form = absl::StrCat(longest, "A"), .unit = "", .texts = std::move(values)});
}

void NumberTable::Add(std::string name, const std::vector<bool>& values) {
  Column column{.name = std::move(name), .form = "1L", .unit = ""};
  column.raw.width = 1;
  for (const bool value : values) column.raw.cells.emplace_back(value ? "T" : "F");
  columns_.push_back(std::move(column));
}

void NumberTable::Copy(std::string name, const RawColumn& from, const std::vector<int>& rows) {
  Column column{.name = std::move(name), .form = from.form, .unit = ""};
  column.raw.width = from.width;
  column.raw.cards = from.cards;
  for (const int row : rows) column.raw.cells.push_back(from.cells[static_cast<size_t>(row)]);
  columns_.push_back(std::move(column));
}

void NumberTable::Write(const char* hdu, FitsBuilder* fits) const {
  std::vector<std::string> names, forms;
  for (const Column& column : columns_) {
    names.push_back(column.name);
    forms.push_back(column.form);
  }
  fits->BeginTable(hdu, rows_, names, forms);
  for (size_t k = 0; k < columns_.size(); ++k) WriteCards(columns_[k], k + 1, fits);
  int64_t position = 1;
  for (size_t k = 0; k < columns_.size() && rows_ > 0; ++k) {
    const Column& column = columns_[k];
    const int number = static_cast<int>(k) + 1;
    if (!column.numbers.empty()) fits->ColumnValues(number, 1, absl::MakeConstSpan(column.numbers));
    if (!column.integers.empty()) fits->ColumnValues(number, 1, absl::MakeConstSpan(column.integers));
    for (size_t row = 0; row < column.texts.size(); ++row)
      fits->ColumnText(number, static_cast<int64_t>(row) + 1, column.texts[row]);
    for (size_t row = 0; row < column.raw.cells.size(); ++row)
      fits->RowBytes(static_cast<int64_t>(row) + 1, position, column.raw.cells[row]);
    position += WidthOf(column);
  }
}

}  // namespace spexd
