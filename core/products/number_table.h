// A table HDU of numbers and short texts, built column by column.
#ifndef SPEXD_CORE_PRODUCTS_NUMBER_TABLE_H_
#define SPEXD_CORE_PRODUCTS_NUMBER_TABLE_H_

#include <concepts>
#include <cstdint>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "core/fits/hdu/fits_builder.h"
#include "core/fits/hdu/table_file.h"

namespace spexd {

class NumberTable {
 public:
  struct Column {
    std::string name, form, unit;         // TTYPE, TFORM, TUNIT ("" for none)
    std::vector<int64_t> integers = {};   // [row], for 1K and 1J
    std::vector<double> numbers = {};     // [row], for 1D and 1E
    std::vector<std::string> texts = {};  // [row], for nA
    RawColumn raw = {};                   // cells [row] of 1L or of a copied column, with its form and cards
  };

  explicit NumberTable(int64_t rows) : rows_(rows) {}

  void Add(std::string name, std::vector<double> values, std::string unit = "") {
    columns_.push_back(
        {.name = std::move(name), .form = "1D", .unit = std::move(unit), .numbers = std::move(values)});
  }
  void Add(std::string name, const std::vector<float>& values, std::string unit = "") {
    columns_.push_back({.name = std::move(name),
                        .form = "1E",
                        .unit = std::move(unit),
                        .numbers = {values.begin(), values.end()}});
  }
  void Add(std::string name, std::vector<int64_t> values) {
    columns_.push_back({.name = std::move(name), .form = "1K", .unit = "", .integers = std::move(values)});
  }
  void Add(std::string name, const std::vector<int32_t>& values) {
    columns_.push_back(
        {.name = std::move(name), .form = "1J", .unit = "", .integers = {values.begin(), values.end()}});
  }
  void Add(std::string name, const std::vector<bool>& values);
  void Add(std::string name, std::vector<std::string> values);
  // Adds a column with `value` of each row.
  template <typename Row, std::invocable<const Row&> Value, typename... Unit>
  void Add(std::string name, const std::vector<Row>& rows, const Value& value, Unit... unit) {
    std::vector<std::decay_t<decltype(value(rows[0]))>> values;
    for (const Row& row : rows) values.push_back(value(row));
    Add(std::move(name), std::move(values), std::move(unit)...);
  }
  // Adds these rows of a column of another table unchanged. REQUIRES: the column has these rows.
  void Copy(std::string name, const RawColumn& column, const std::vector<int>& rows);

  const std::vector<Column>& columns() const { return columns_; }
  // Begins a table HDU with all columns.
  void Write(const char* hdu, FitsBuilder* fits) const;

 private:
  int64_t rows_;
  std::vector<Column> columns_;
};

}  // namespace spexd

#endif  // SPEXD_CORE_PRODUCTS_NUMBER_TABLE_H_
