#include "core/products/number_table.h"

namespace spexd {

void NumberTable::Write(const char* hdu, FitsBuilder* fits) const {
  std::vector<std::string> names, forms;
  for (const Column& column : columns_) {
    names.push_back(column.name);
    forms.push_back(column.form);
  }
  fits->BeginTable(hdu, rows_, names, forms);
  for (size_t k = 0; k < columns_.size() && rows_ > 0; ++k) {
    const int number = static_cast<int>(k) + 1;
    if (columns_[k].numbers.empty()) {
      fits->ColumnValues(number, 1, absl::MakeConstSpan(columns_[k].integers));
    } else {
      fits->ColumnValues(number, 1, absl::MakeConstSpan(columns_[k].numbers));
    }
  }
}

}  // namespace spexd
