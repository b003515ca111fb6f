// Tables in the form in which CFITSIO can copy them, and their columns.
#ifndef SPEXD_CORE_FITS_HDU_TABLE_FILE_H_
#define SPEXD_CORE_FITS_HDU_TABLE_FILE_H_

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "core/model/frame.h"

namespace spexd {

// The bytes of a FITS file whose second HDU is the table, with empty checksums. The table may come from an
// unknown writer. The cards that state its structure come first, in the standard's order and once each, and
// agree with the data; characters that FITS does not allow become '?'. InvalidArgument if cards and data do
// not agree.
absl::StatusOr<std::string> FileOfTable(const RawTable& table);

bool HasColumn(const RawTable& table, absl::string_view name);
// The values of a column of numbers or texts, one in each row. InvalidArgument if the table has no column of
// this name, or one of another kind.
absl::StatusOr<std::vector<double>> NumberColumn(const RawTable& table, absl::string_view name);
absl::StatusOr<std::vector<std::string>> TextColumn(const RawTable& table, absl::string_view name);
// The values of a column of integers, with the same errors.
absl::StatusOr<std::vector<int64_t>> IntegerColumn(const RawTable& table, absl::string_view name);

// A table of these rows in this order, each as often as it is named, with the whole heap. REQUIRES: rows of
// the table.
RawTable RowsOf(const RawTable& table, const std::vector<int>& rows);

// A column as it is on disk, to be copied into another table.
struct RawColumn {
  std::string form;                // TFORM
  int64_t width = 0;               // bytes of a cell
  std::vector<std::string> cells;  // [row]
  // Cards that describe the column's values, if the table has them (TUNIT, TSCAL, TZERO, TNULL and TDIM): the
  // keyword, and the characters that follow it in the card.
  std::vector<std::pair<std::string, std::string>> cards;
};
// Copies a column. InvalidArgument if the table has no column of this name, or one whose arrays are in the
// heap.
absl::StatusOr<RawColumn> CopyColumn(const RawTable& table, absl::string_view name);

}  // namespace spexd

#endif  // SPEXD_CORE_FITS_HDU_TABLE_FILE_H_
