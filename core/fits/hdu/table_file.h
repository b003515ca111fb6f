// A table as CFITSIO can copy it.
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

// The bytes of a FITS file whose second HDU is the table, with empty checksums. The table may be a
// stranger's: the cards that tell its structure stand first and in the standard's order, once each, and agree
// with the data; characters that FITS does not allow become '?'. InvalidArgument where cards and data do not
// agree.
absl::StatusOr<std::string> FileOfTable(const RawTable& table);

bool HasColumn(const RawTable& table, absl::string_view name);
// A column of numbers or of texts, one in each row. InvalidArgument if the table has none of this name, or
// values of another kind.
absl::StatusOr<std::vector<double>> NumberColumn(const RawTable& table, absl::string_view name);
absl::StatusOr<std::vector<std::string>> TextColumn(const RawTable& table, absl::string_view name);
// The same of integers.
absl::StatusOr<std::vector<int64_t>> IntegerColumn(const RawTable& table, absl::string_view name);

// These rows, in this order, a row as often as it is named, with the whole heap. REQUIRES: rows of the table.
RawTable RowsOf(const RawTable& table, const std::vector<int>& rows);

// A column as it is on disk, to be copied into another table.
struct RawColumn {
  std::string form;                // TFORM
  int64_t width = 0;               // bytes of a cell
  std::vector<std::string> cells;  // [row]
  // What describes its values, if the table tells it: TUNIT, TSCAL, TZERO, TNULL and TDIM, and the characters
  // that follow the keyword in the card.
  std::vector<std::pair<std::string, std::string>> cards;
};
// InvalidArgument if the table has no column of this name, or one of arrays in its heap.
absl::StatusOr<RawColumn> CopyColumn(const RawTable& table, absl::string_view name);

}  // namespace spexd

#endif  // SPEXD_CORE_FITS_HDU_TABLE_FILE_H_
