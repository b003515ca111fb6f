#include "core/fits/hdu/table.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "core/base/status_macros.h"
#include "core/fits/hdu/byte_order.h"
#include "core/fits/hdu/cards.h"
#include "core/model/fits_header.h"

namespace spexd {
namespace {

// Parses TFORMn: "rT", "rPt(max)" or "rQt(max)".
bool ParseForm(const std::string& form, Column& column) {
  size_t at = 0;
  int64_t repeat = 0;
  while (at < form.size() && absl::ascii_isdigit(form[at])) {
    if (repeat > (int64_t{1} << 50)) return false;
    repeat = 10 * repeat + (form[at++] - '0');
  }
  if (at == form.size()) return false;
  column.repeat = at == 0 ? 1 : repeat;
  column.type = form[at];
  if (ElementBytes(column.type) == 0) return false;
  if (column.type == 'P' || column.type == 'Q') {
    if (at + 1 == form.size() || column.repeat > 1) return false;
    column.element = form[at + 1];
    if (ElementBytes(column.element) == 0 || column.element == 'P' || column.element == 'Q') return false;
  }
  column.width = column.type == 'X' ? (column.repeat + 7) / 8 : column.repeat * ElementBytes(column.type);
  return true;
}

template <typename S>
void Load(const char* bytes, absl::Span<double> out) {
  for (double& value : out) {
    value = static_cast<double>(LoadBigEndian<S>(bytes));
    bytes += sizeof(S);
  }
}

}  // namespace

int64_t ElementBytes(char type) {
  switch (type) {
    case 'L':
    case 'X':
    case 'B':
    case 'A':
      return 1;
    case 'I':
      return 2;
    case 'J':
    case 'E':
      return 4;
    case 'K':
    case 'D':
    case 'C':
    case 'P':
      return 8;
    case 'M':
    case 'Q':
      return 16;
    default:
      return 0;
  }
}

absl::StatusOr<TableView> TableView::Make(const Hdu& hdu) {
  if (!hdu.IsTable() || hdu.axes.size() != 2 || hdu.bitpix != 8) return hdu.Error("is not a binary table");
  if (hdu.IsTrue("ZTABLE")) return hdu.Error("is a compressed table; only plain ones are read");
  TableView view;
  view.hdu_ = &hdu;
  view.row_bytes_ = hdu.axes[0];
  view.rows_ = hdu.axes[1];
  SPEXD_ASSIGN_OR_RETURN(const int64_t fields, hdu.RequireInteger("TFIELDS", 0, 999));
  int64_t offset = 0;
  for (int64_t k = 1; k <= fields; ++k) {
    Column column;
    const std::string form = hdu.String(absl::StrCat("TFORM", k)).value_or("");
    if (!ParseForm(form, column)) {
      return hdu.Error(absl::StrFormat("TFORM%d \"%s\" is no column format", k, Excerpt(form)));
    }
    column.name = absl::AsciiStrToUpper(hdu.String(absl::StrCat("TTYPE", k)).value_or(""));
    column.offset = offset;
    if (column.width > view.row_bytes_ - offset) {
      return hdu.Error(absl::StrFormat("column %d ends beyond the %d bytes of a row", k, view.row_bytes_));
    }
    offset += column.width;
    column.scale = hdu.Number(absl::StrCat("TSCAL", k)).value_or(1);
    column.zero = hdu.Number(absl::StrCat("TZERO", k)).value_or(0);
    view.columns_.push_back(std::move(column));
  }
  if (offset != view.row_bytes_) {
    return hdu.Error(absl::StrFormat("the columns take %d bytes, NAXIS1 is %d", offset, view.row_bytes_));
  }
  // The parser has found the data in the file, so this product does not overflow.
  const int64_t main_bytes = view.rows_ * view.row_bytes_;
  int64_t heap = main_bytes;
  if (hdu.Has("THEAP")) {
    SPEXD_ASSIGN_OR_RETURN(heap,
                           hdu.RequireInteger("THEAP", main_bytes, static_cast<int64_t>(hdu.data.size())));
  }
  view.heap_ = hdu.data.substr(static_cast<size_t>(heap));
  return view;
}

const Column* TableView::Find(absl::string_view name) const {
  for (const Column& column : columns_) {
    if (absl::EqualsIgnoreCase(column.name, name)) return &column;
  }
  return nullptr;
}

absl::StatusOr<const Column*> TableView::Get(absl::string_view name) const {
  if (const Column* column = Find(name)) return column;
  return hdu_->Error(absl::StrCat("there is no column ", Excerpt(name)));
}

absl::string_view TableView::Cell(int64_t row, const Column& column) const {
  return hdu_->data.substr(static_cast<size_t>(row * row_bytes_ + column.offset),
                           static_cast<size_t>(column.width));
}

absl::StatusOr<absl::string_view> TableView::HeapCell(int64_t row, const Column& column) const {
  if (column.element == ' ')
    return hdu_->Error(absl::StrCat("column ", column.name, " has no variable-length arrays"));
  if (column.repeat == 0) return absl::string_view();
  const absl::string_view cell = Cell(row, column);
  int64_t count, offset;
  if (column.type == 'P') {
    count = LoadBigEndian<int32_t>(cell.data());
    offset = LoadBigEndian<int32_t>(cell.data() + 4);
  } else {
    count = LoadBigEndian<int64_t>(cell.data());
    offset = LoadBigEndian<int64_t>(cell.data() + 8);
  }
  const std::optional<int64_t> bytes = CheckedProduct(count, ElementBytes(column.element));
  if (count == 0) return absl::string_view();
  const int64_t heap = static_cast<int64_t>(heap_.size());
  if (!bytes || offset < 0 || offset > heap || *bytes > heap - offset) {
    return hdu_->Error(absl::StrFormat("row %d of %s points outside the table's heap of %d bytes", row + 1,
                                       column.name, heap));
  }
  return heap_.substr(static_cast<size_t>(offset), static_cast<size_t>(*bytes));
}

absl::Status TableView::Numbers(int64_t row, const Column& column, absl::Span<double> out) const {
  if (static_cast<int64_t>(out.size()) != column.repeat) {
    return hdu_->Error(absl::StrFormat("column %s has %d values a row, %d are needed", column.name,
                                       column.repeat, out.size()));
  }
  const char* bytes = Cell(row, column).data();
  switch (column.type) {
    case 'B':
      Load<uint8_t>(bytes, out);
      break;
    case 'I':
      Load<int16_t>(bytes, out);
      break;
    case 'J':
      Load<int32_t>(bytes, out);
      break;
    case 'K':
      Load<int64_t>(bytes, out);
      break;
    case 'E':
      Load<float>(bytes, out);
      break;
    case 'D':
      Load<double>(bytes, out);
      break;
    default:
      return hdu_->Error(absl::StrCat("column ", column.name, " does not hold numbers"));
  }
  for (double& value : out) value = column.scale * value + column.zero;
  return absl::OkStatus();
}

absl::StatusOr<int64_t> TableView::Integer(int64_t row, const Column& column) const {
  double value = 0;
  SPEXD_RETURN_IF_ERROR(Numbers(row, column, absl::MakeSpan(&value, 1)));
  const auto refused = [&] {
    return hdu_->Error(absl::StrFormat("column %s, row %d: %g is no integer that can be held", column.name,
                                       row + 1, value));
  };
  if (column.type == 'K' && column.scale == 1) {  // doubles cannot hold all of these
    const int64_t stored = LoadBigEndian<int64_t>(Cell(row, column).data());
    constexpr double kUnsigned = 9223372036854775808.0;  // 2^63, the TZERO of unsigned integers
    if (column.zero == 0) return stored;
    if (column.zero == kUnsigned) {
      if (stored >= 0) return refused();
      return stored - std::numeric_limits<int64_t>::min();
    }
  }
  constexpr double kMax = 9007199254740992;  // 2^53
  if (!(std::abs(value) <= kMax) || value != std::floor(value)) return refused();
  return static_cast<int64_t>(value);
}

std::string TableView::Text(int64_t row, const Column& column) const {
  if (column.type != 'A') return "";
  const absl::string_view cell = Cell(row, column);
  return std::string(absl::StripTrailingAsciiWhitespace(cell.substr(0, cell.find('\0'))));
}

absl::StatusOr<RawTable> ReadRawTable(const Hdu& hdu) {
  SPEXD_ASSIGN_OR_RETURN(const TableView view, TableView::Make(hdu));
  RawTable table;
  table.rows = view.rows();
  table.row_bytes = view.row_bytes();
  for (const std::string& card : hdu.cards) {
    const absl::string_view keyword = CardKeyword(card);
    if (keyword == "CHECKSUM" || keyword == "DATASUM" || keyword == "THEAP") continue;
    if (keyword == "PCOUNT") {
      table.cards.push_back(IntegerCard("PCOUNT", static_cast<int64_t>(view.heap().size())));
    } else {
      table.cards.push_back(card);
    }
  }
  const size_t main_bytes = static_cast<size_t>(view.rows() * view.row_bytes());
  SPEXD_RETURN_IF_ERROR(hdu.TakeMemory(static_cast<int64_t>(main_bytes + view.heap().size()) +
                                       kCardCopyBytes * static_cast<int64_t>(hdu.cards.size())));
  table.data.reserve(main_bytes + view.heap().size());
  table.data.append(hdu.data.data(), main_bytes);
  table.data.append(view.heap().data(), view.heap().size());
  return table;
}

}  // namespace spexd
