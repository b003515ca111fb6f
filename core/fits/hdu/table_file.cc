#include "core/fits/hdu/table_file.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "core/base/status_macros.h"
#include "core/fits/hdu/byte_order.h"
#include "core/fits/hdu/cards.h"
#include "core/fits/hdu/checksum.h"
#include "core/fits/hdu/fits_file.h"
#include "core/fits/hdu/source.h"
#include "core/fits/hdu/table.h"
#include "core/model/fits_header.h"

namespace spexd {
namespace {

constexpr size_t kKeywordBytes = 8;  // length of a card's keyword

absl::Status Disagree() { return absl::InvalidArgumentError("FIBERMAP: header and data do not agree"); }

// The card for an integer: the table's own, with its comment, or a new one if it is missing or not written as
// CFITSIO reads integers.
std::string StructureCard(const RawTable& table, const std::string& keyword, int64_t value) {
  for (const std::string& card : table.cards) {
    if (CardKeyword(card) != keyword) continue;
    if (CardNumber(card) != static_cast<double>(value) || !IsWellFormedCard(card)) break;
    const absl::string_view text = absl::string_view(card).substr(10, card.find('/') - 10);
    const absl::string_view digits = absl::StripAsciiWhitespace(text);
    if (std::all_of(digits.begin(), digits.end(), absl::ascii_isdigit)) return card;
    break;
  }
  return IntegerCard(keyword, value);
}

// The cards that the standard requires, in its order. TFORMs are among the other cards.
std::vector<std::string> StructureCards(const RawTable& table, int64_t columns) {
  const int64_t heap = static_cast<int64_t>(table.data.size()) - table.rows * table.row_bytes;
  std::vector<std::string> cards;
  const bool own = !table.cards.empty() && IsWellFormedCard(table.cards[0]) &&
                   CardKeyword(table.cards[0]) == "XTENSION" && CardString(table.cards, 0) == "BINTABLE";
  cards.push_back(own ? table.cards[0] : "XTENSION= 'BINTABLE'");
  for (const auto& [keyword, value] :
       std::initializer_list<std::pair<const char*, int64_t>>{{"BITPIX", 8},
                                                              {"NAXIS", 2},
                                                              {"NAXIS1", table.row_bytes},
                                                              {"NAXIS2", table.rows},
                                                              {"PCOUNT", heap},
                                                              {"GCOUNT", 1},
                                                              {"TFIELDS", columns}}) {
    cards.push_back(StructureCard(table, keyword, value));
  }
  return cards;
}

// All other cards. A keyword that describes the storage comes only once, because readers differ in which of
// two they use.
std::vector<std::string> OtherCards(const RawTable& table) {
  std::vector<std::string> printable;
  for (const std::string& card : table.cards) printable.push_back(PrintableAscii(card));
  std::set<std::string> seen = {"XTENSION", "BITPIX",  "NAXIS", "NAXIS1",   "NAXIS2",  "PCOUNT",
                                "GCOUNT",   "TFIELDS", "THEAP", "CHECKSUM", "DATASUM", "END"};
  return FilterCards(printable, [&seen](absl::string_view card) {
    const std::string keyword(CardKeyword(card));
    if (seen.count(keyword) > 0) return false;
    if (keyword != "COMMENT" && IsStructuralCard(card)) seen.insert(keyword);
    return true;
  });
}

// Reads the bytes with our own reader, which checks that cards and data agree, so that CFITSIO only sees
// consistent tables.
absl::Status Check(const RawTable& table, const std::string& bytes) {
  SPEXD_ASSIGN_OR_RETURN(const Source source, Source::FromBytes("FIBERMAP", bytes));
  SPEXD_ASSIGN_OR_RETURN(const FitsFile file, FitsFile::Parse(source));
  if (file.hdus().size() != 2) return Disagree();
  SPEXD_ASSIGN_OR_RETURN(const TableView view, TableView::Make(file.hdus()[1]));
  const bool same = view.rows() == table.rows && view.row_bytes() == table.row_bytes &&
                    file.hdus()[1].data.size() == table.data.size();
  return same ? absl::OkStatus() : Disagree();
}

}  // namespace

absl::StatusOr<std::string> FileOfTable(const RawTable& table) {
  const std::optional<int64_t> needed = CheckedProduct(table.rows, table.row_bytes);
  if (!needed || *needed > static_cast<int64_t>(table.data.size())) {
    return absl::InvalidArgumentError(absl::StrFormat("FIBERMAP: %d rows of %d bytes need more than %d bytes",
                                                      table.rows, table.row_bytes, table.data.size()));
  }
  // CFITSIO would treat such a table as an image.
  for (const std::string& card : table.cards) {
    if (CardKeyword(card) == "ZIMAGE")
      return absl::InvalidArgumentError("FIBERMAP: a compressed image, must be a table");
  }
  const std::optional<double> columns = FindNumber(table.cards, "TFIELDS");
  if (!columns || !(*columns >= 0 && *columns <= 999)) return Disagree();
  std::string bytes;
  const auto card = [&bytes](absl::string_view text) { bytes += absl::StrFormat("%-80s", text); };
  const auto pad = [&bytes](char fill) { bytes.resize(FitsPadded(bytes.size()), fill); };
  for (const char* text : {"SIMPLE  =                    T", "BITPIX  =                    8",
                           "NAXIS   =                    0", "EXTEND  =                    T", "END"}) {
    card(text);
  }
  pad(' ');
  for (const std::string& text : StructureCards(table, static_cast<int64_t>(*columns))) card(text);
  for (const std::string& text : OtherCards(table)) card(text);
  for (absl::string_view text : {kChecksumCard, kDatasumCard}) card(text);
  card("END");
  pad(' ');
  bytes += table.data;
  pad('\0');
  SPEXD_RETURN_IF_ERROR(Check(table, bytes));
  return bytes;
}

namespace {

// The table as an HDU, which refers to the table's data.
absl::StatusOr<Hdu> HduOf(const RawTable& table) {
  const std::optional<int64_t> size = CheckedProduct(table.rows, table.row_bytes);
  if (!size || *size > static_cast<int64_t>(table.data.size())) return Disagree();
  Hdu hdu;
  hdu.file = "FIBERMAP";
  hdu.name = "FIBERMAP";
  hdu.type = "BINTABLE";
  hdu.cards = table.cards;
  for (size_t k = 0; k < hdu.cards.size(); ++k)
    hdu.card_of.emplace(std::string(CardKeyword(hdu.cards[k])), k);
  hdu.bitpix = 8;
  hdu.axes = {table.row_bytes, table.rows};
  hdu.data = table.data;
  return hdu;
}

// Calls body(hdu, view, column) for a column with one value in each row.
template <typename Body>
absl::Status WithColumn(const RawTable& table, absl::string_view name, const Body& body) {
  SPEXD_ASSIGN_OR_RETURN(const Hdu hdu, HduOf(table));
  SPEXD_ASSIGN_OR_RETURN(const TableView view, TableView::Make(hdu));
  SPEXD_ASSIGN_OR_RETURN(const Column* column, view.Get(name));
  return body(hdu, view, *column);
}

}  // namespace

bool HasColumn(const RawTable& table, absl::string_view name) {
  return std::any_of(table.cards.begin(), table.cards.end(), [name](const std::string& card) {
    return absl::StartsWith(CardKeyword(card), "TTYPE") &&
           absl::EqualsIgnoreCase(CardString({card}, 0).value_or(""), name);
  });
}

absl::StatusOr<std::vector<double>> NumberColumn(const RawTable& table, absl::string_view name) {
  std::vector<double> values;
  SPEXD_RETURN_IF_ERROR(
      WithColumn(table, name, [&](const Hdu& hdu, const TableView& view, const Column& column) {
        if (column.repeat != 1) {
          return hdu.Error(
              absl::StrFormat("column %s has %d values a row, must have one", name, column.repeat));
        }
        values.resize(static_cast<size_t>(view.rows()));
        for (int64_t row = 0; row < view.rows(); ++row) {
          SPEXD_RETURN_IF_ERROR(
              view.Numbers(row, column, absl::MakeSpan(&values[static_cast<size_t>(row)], 1)));
        }
        return absl::OkStatus();
      }));
  return values;
}

absl::StatusOr<std::vector<std::string>> TextColumn(const RawTable& table, absl::string_view name) {
  std::vector<std::string> values;
  SPEXD_RETURN_IF_ERROR(
      WithColumn(table, name, [&](const Hdu& hdu, const TableView& view, const Column& column) {
        if (column.type != 'A') return hdu.Error(absl::StrFormat("column %s is no text", name));
        for (int64_t row = 0; row < view.rows(); ++row) values.push_back(view.Text(row, column));
        return absl::OkStatus();
      }));
  return values;
}

RawTable RowsOf(const RawTable& table, const std::vector<int>& rows) {
  RawTable some = table.Sliced(0, 0);  // only the heap
  some.rows = static_cast<int64_t>(rows.size());
  std::string data;
  data.reserve(static_cast<size_t>(some.rows * table.row_bytes) + some.data.size());
  for (const int row : rows)
    data.append(table.data, static_cast<size_t>(row * table.row_bytes), static_cast<size_t>(table.row_bytes));
  some.data = data + some.data;
  for (std::string& card : some.cards)
    if (CardKeyword(card) == "NAXIS2") card = IntegerCard("NAXIS2", some.rows);
  return some;
}

absl::StatusOr<RawColumn> CopyColumn(const RawTable& table, absl::string_view name) {
  RawColumn copy;
  SPEXD_RETURN_IF_ERROR(
      WithColumn(table, name, [&](const Hdu& hdu, const TableView& view, const Column& column) {
        if (column.element != ' ')
          return hdu.Error(absl::StrFormat("column %s has arrays in the heap, and is not copied", name));
        const auto number = static_cast<int64_t>(&column - view.columns().data()) + 1;
        copy.form = hdu.String(absl::StrCat("TFORM", number)).value_or("");
        copy.width = column.width;
        for (int64_t row = 0; row < view.rows(); ++row) copy.cells.emplace_back(view.Cell(row, column));
        for (const char* stem : {"TUNIT", "TSCAL", "TZERO", "TNULL", "TDIM"}) {
          const auto card = hdu.card_of.find(absl::StrCat(stem, number));
          if (card == hdu.card_of.end()) continue;
          const std::string& text = hdu.cards[card->second];
          if (IsWellFormedCard(text)) copy.cards.emplace_back(stem, text.substr(kKeywordBytes));
        }
        return absl::OkStatus();
      }));
  return copy;
}

absl::StatusOr<std::vector<int64_t>> IntegerColumn(const RawTable& table, absl::string_view name) {
  std::vector<int64_t> values;
  SPEXD_RETURN_IF_ERROR(
      WithColumn(table, name, [&](const Hdu& hdu, const TableView& view, const Column& column) {
        values.resize(static_cast<size_t>(view.rows()));
        for (int64_t row = 0; row < view.rows(); ++row) {
          SPEXD_ASSIGN_OR_RETURN(values[static_cast<size_t>(row)], view.Integer(row, column));
        }
        return absl::OkStatus();
      }));
  return values;
}

}  // namespace spexd
