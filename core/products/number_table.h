// A table HDU of numbers, put together column by column.
#ifndef SPEXD_CORE_PRODUCTS_NUMBER_TABLE_H_
#define SPEXD_CORE_PRODUCTS_NUMBER_TABLE_H_

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "core/fits/hdu/fits_builder.h"

namespace spexd {

class NumberTable {
 public:
  struct Column {
    std::string name, form;         // TFORM: 1K or 1D
    std::vector<int64_t> integers;  // [row] if 1K
    std::vector<double> numbers;    // [row] if 1D
  };

  explicit NumberTable(int64_t rows) : rows_(rows) {}

  void Add(std::string name, std::vector<double> values) {
    Put(std::move(name), "1D", {}, std::move(values));
  }
  void Add(std::string name, std::vector<int64_t> values) {
    Put(std::move(name), "1K", std::move(values), {});
  }
  // A column of what `value` makes of each row.
  template <typename Row, typename Value>
  void Add(std::string name, const std::vector<Row>& rows, const Value& value) {
    std::vector<decltype(value(rows[0]))> values;
    for (const Row& row : rows) values.push_back(value(row));
    Add(std::move(name), std::move(values));
  }
  const std::vector<Column>& columns() const { return columns_; }
  // Begins a table HDU with all columns.
  void Write(const char* hdu, FitsBuilder* fits) const;

 private:
  void Put(std::string name, std::string form, std::vector<int64_t> integers, std::vector<double> numbers) {
    columns_.push_back({std::move(name), std::move(form), std::move(integers), std::move(numbers)});
  }

  int64_t rows_;
  std::vector<Column> columns_;
};

}  // namespace spexd

#endif  // SPEXD_CORE_PRODUCTS_NUMBER_TABLE_H_
