// A table HDU of numbers and short texts, put together column by column.
#ifndef SPEXD_CORE_PRODUCTS_NUMBER_TABLE_H_
#define SPEXD_CORE_PRODUCTS_NUMBER_TABLE_H_

#include <concepts>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "core/fits/hdu/fits_builder.h"

namespace spexd {

class NumberTable {
 public:
  struct Column {
    std::string name, form, unit;         // TTYPE, TFORM (1K, 1D or nA), TUNIT ("" for none)
    std::vector<int64_t> integers = {};   // [row] if 1K
    std::vector<double> numbers = {};     // [row] if 1D
    std::vector<std::string> texts = {};  // [row] if nA
  };

  explicit NumberTable(int64_t rows) : rows_(rows) {}

  void Add(std::string name, std::vector<double> values, std::string unit = "") {
    columns_.push_back(
        {.name = std::move(name), .form = "1D", .unit = std::move(unit), .numbers = std::move(values)});
  }
  void Add(std::string name, std::vector<int64_t> values) {
    columns_.push_back({.name = std::move(name), .form = "1K", .unit = "", .integers = std::move(values)});
  }
  void Add(std::string name, std::vector<std::string> values);
  // A column of what `value` makes of each row.
  template <typename Row, std::invocable<const Row&> Value, typename... Unit>
  void Add(std::string name, const std::vector<Row>& rows, const Value& value, Unit... unit) {
    std::vector<decltype(value(rows[0]))> values;
    for (const Row& row : rows) values.push_back(value(row));
    Add(std::move(name), std::move(values), std::move(unit)...);
  }
  const std::vector<Column>& columns() const { return columns_; }
  // Begins a table HDU with all columns.
  void Write(const char* hdu, FitsBuilder* fits) const;

 private:
  int64_t rows_;
  std::vector<Column> columns_;
};

}  // namespace spexd

#endif  // SPEXD_CORE_PRODUCTS_NUMBER_TABLE_H_
