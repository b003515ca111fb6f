// Tables of products as columns of numpy.
#ifndef SPEXD_PYTHON_NATIVE_PRODUCTS_COLUMNS_H_
#define SPEXD_PYTHON_NATIVE_PRODUCTS_COLUMNS_H_

#include <nanobind/nanobind.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <utility>
#include <vector>

#include "core/analysis/velocity/velocity.h"
#include "core/base/array.h"
#include "core/products/number_table.h"
#include "python/native/arrays.h"

namespace spexd::python {

// Returns a tuple (name, values) for each column. Numbers are an array [row] of int64, int32, float64 or
// float32, by the column's form. Texts, logicals and columns copied from another table are a tuple (form,
// rows, bytes, cards) for spexd._cards.column_of: the cells follow each other as in FITS.
nanobind::list ColumnsOf(const NumberTable& table);

// Returns an array [star, size] of each star's values, NaN where it has none. `values`: returns a reference
// to at most `size` values of a star.
template <typename Values>
nanobind::object RowsOfStars(const std::vector<StarVelocity>& stars, size_t size, const Values& values) {
  Array<double, 2> rows({static_cast<int64_t>(stars.size()), static_cast<int64_t>(size)},
                        std::numeric_limits<double>::quiet_NaN());
  for (size_t k = 0; k < stars.size(); ++k) {
    const std::vector<double>& row = values(stars[k]);
    std::copy(row.begin(), row.end(), rows.Row(static_cast<int64_t>(k)).begin());
  }
  return nanobind::cast(Given(std::move(rows)));
}

}  // namespace spexd::python

#endif  // SPEXD_PYTHON_NATIVE_PRODUCTS_COLUMNS_H_
