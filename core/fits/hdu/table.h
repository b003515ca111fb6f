// Binary tables (FITS standard 4.0, section 7.3).
#ifndef SPEXD_CORE_FITS_HDU_TABLE_H_
#define SPEXD_CORE_FITS_HDU_TABLE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "core/fits/hdu/fits_file.h"
#include "core/model/frame.h"

namespace spexd {

struct Column {
  std::string name;    // TTYPEn, upper case
  char type = ' ';     // the letter of TFORMn
  char element = ' ';  // type of the elements if the cell is a variable-length array (types P and Q)
  int64_t repeat = 0;
  int64_t offset = 0;  // offset of the cell in its row, bytes
  int64_t width = 0;   // width of the cell, bytes
  double scale = 1;    // TSCALn: a number is scale * the stored value + zero
  double zero = 0;     // TZEROn
};

// The bytes of one value of a TFORM letter; 0 if there is no such type. For X, which counts bits, it is 1.
int64_t ElementBytes(char type);

// A view of a table HDU. The HDU must outlive it.
class TableView {
 public:
  // Makes a view. InvalidArgument if the HDU is no table or its columns do not fit its rows.
  static absl::StatusOr<TableView> Make(const Hdu& hdu);

  int64_t rows() const { return rows_; }
  int64_t row_bytes() const { return row_bytes_; }
  absl::string_view heap() const { return heap_; }
  const std::vector<Column>& columns() const { return columns_; }
  const Column* Find(absl::string_view name) const;
  absl::StatusOr<const Column*> Get(absl::string_view name) const;

  // The bytes of a cell. REQUIRES: 0 <= row < rows().
  absl::string_view Cell(int64_t row, const Column& column) const;
  // The bytes of a variable-length array; InvalidArgument if it lies outside the heap.
  absl::StatusOr<absl::string_view> HeapCell(int64_t row, const Column& column) const;
  // All numbers of a cell, scaled (types B, I, J, K, E, D). InvalidArgument for another type.
  absl::Status Numbers(int64_t row, const Column& column, absl::Span<double> out) const;
  // The one number of a cell, exactly. InvalidArgument if it is no integer, or an unsigned one of 2^63 or
  // more.
  absl::StatusOr<int64_t> Integer(int64_t row, const Column& column) const;
  // The text of a cell of type A, without trailing blanks and NULs; "" for another type.
  std::string Text(int64_t row, const Column& column) const;

 private:
  const Hdu* hdu_ = nullptr;
  int64_t rows_ = 0, row_bytes_ = 0;
  std::vector<Column> columns_;
  absl::string_view heap_;
};

// Copies the table as it is on disk, without a gap between rows and heap.
absl::StatusOr<RawTable> ReadRawTable(const Hdu& hdu);

}  // namespace spexd

#endif  // SPEXD_CORE_FITS_HDU_TABLE_H_
