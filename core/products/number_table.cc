#include "core/products/number_table.h"

#include <algorithm>

#include "absl/strings/str_cat.h"

namespace spexd {

void NumberTable::Add(std::string name, std::vector<std::string> values) {
  size_t longest = 1;
  for (const std::string& value : values) longest = std::max(longest, value.size());
  columns_.push_back(
      {.name = std::move(name), .form = absl::StrCat(longest, "A"), .unit = "", .texts = std::move(values)});
}

void NumberTable::Write(const char* hdu, FitsBuilder* fits) const {
  std::vector<std::string> names, forms;
  for (const Column& column : columns_) {
    names.push_back(column.name);
    forms.push_back(column.form);
  }
  fits->BeginTable(hdu, rows_, names, forms);
  for (size_t k = 0; k < columns_.size(); ++k) {
    if (!columns_[k].unit.empty()) fits->Text(absl::StrCat("TUNIT", k + 1).c_str(), columns_[k].unit, "");
  }
  for (size_t k = 0; k < columns_.size() && rows_ > 0; ++k) {
    const Column& column = columns_[k];
    const int number = static_cast<int>(k) + 1;
    if (!column.numbers.empty()) fits->ColumnValues(number, 1, absl::MakeConstSpan(column.numbers));
    if (!column.integers.empty()) fits->ColumnValues(number, 1, absl::MakeConstSpan(column.integers));
    for (size_t row = 0; row < column.texts.size(); ++row)
      fits->ColumnText(number, static_cast<int64_t>(row) + 1, column.texts[row]);
  }
}

}  // namespace spexd
