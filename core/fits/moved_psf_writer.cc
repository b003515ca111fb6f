#include "core/fits/moved_psf_writer.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <functional>
#include <initializer_list>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "core/base/status_macros.h"
#include "core/base/threads/deadline.h"
#include "core/fits/hdu/byte_order.h"
#include "core/fits/hdu/cards.h"
#include "core/fits/hdu/checksum.h"
#include "core/fits/hdu/fits_builder.h"
#include "core/fits/hdu/fits_file.h"
#include "core/fits/hdu/hdu_parts.h"
#include "core/fits/hdu/output_file.h"
#include "core/fits/hdu/table.h"
#include "core/fits/images/image_hdu.h"
#include "core/fits/psf/psf_type.h"
#include "core/fits/readers.h"
#include "core/fits/traces/trace_table.h"
#include "core/model/fits_header.h"
#include "core/model/psf_traces/move_psf.h"

namespace spexd {
namespace {

struct CopiedHdu {
  std::vector<std::string> cards;  // without END and checksums
  std::string data;                // without padding
};

bool Is(absl::string_view card, std::initializer_list<absl::string_view> keywords) {
  return std::find(keywords.begin(), keywords.end(), CardKeyword(card)) != keywords.end();
}

// The cards except those that `drop` names, with their CONTINUE cards. All others stay unchanged.
std::vector<std::string> Without(const std::vector<std::string>& cards,
                                 const std::function<bool(absl::string_view card)>& drop) {
  std::vector<std::string> kept;
  bool dropped = false;
  for (const std::string& card : cards) {
    if (CardKeyword(card) != "CONTINUE") dropped = drop(card);
    if (!dropped) kept.push_back(card);
  }
  return kept;
}

CopiedHdu CopyOf(const Hdu& hdu) {
  return {Without(hdu.cards,
                  [](absl::string_view card) {
                    return Is(card, {"CHECKSUM", "DATASUM"});
                  }),
          std::string(hdu.data)};
}

void AppendBigEndian(double value, std::string* bytes) {
  uint64_t bits;
  std::memcpy(&bits, &value, sizeof(bits));
  bits = SwapBigEndian(bits);
  bytes->append(reinterpret_cast<const char*>(&bits), sizeof(bits));
}

bool AllFinite(absl::Span<const double> values) {
  return std::all_of(values.begin(), values.end(), [](double value) { return std::isfinite(value); });
}

// The bytes of traces with `coefficients` coefficients for each fibre: the moved ones, then zeros. A fibre
// whose own coefficients are not finite keeps those, so that readers treat it as lost.
std::string TraceBytes(const LegendreTable& moved, absl::Span<const double> own, int64_t coefficients) {
  const int64_t fibres = moved.coeff.shape(0), own_count = static_cast<int64_t>(own.size()) / fibres;
  std::string bytes;
  for (int64_t i = 0; i < fibres; ++i) {
    const absl::Span<const double> own_row = own.subspan(i * own_count, own_count);
    const absl::Span<const double> row = AllFinite(own_row) ? moved.coeff.Row(i) : own_row;
    for (int64_t k = 0; k < coefficients; ++k)
      AppendBigEndian(k < static_cast<int64_t>(row.size()) ? row[k] : 0, &bytes);
  }
  return bytes;
}

// Replaces XTRACE or YTRACE by a plain image of doubles.
absl::Status ReplaceImage(const Hdu& hdu, bool primary, const LegendreTable& moved, CopiedHdu* copy) {
  SPEXD_ASSIGN_OR_RETURN(const auto own, (ReadImage<double, 2>(hdu)));
  const int64_t fibres = moved.coeff.shape(0), coefficients = moved.coeff.shape(1);
  std::vector<std::string> cards;
  const auto add = [&cards](absl::string_view card) { cards.push_back(absl::StrFormat("%-80s", card)); };
  add(primary ? "SIMPLE  =                    T / file does conform to FITS standard"
              : "XTENSION= 'IMAGE   '           / IMAGE extension");
  for (const auto& [keyword, value] : std::initializer_list<std::pair<const char*, int64_t>>{
           {"BITPIX", -64}, {"NAXIS", 2}, {"NAXIS1", coefficients}, {"NAXIS2", fibres}}) {
    cards.push_back(IntegerCard(keyword, value));
  }
  if (primary) {
    add("EXTEND  =                    T");
  } else {
    cards.push_back(IntegerCard("PCOUNT", 0));
    cards.push_back(IntegerCard("GCOUNT", 1));
  }
  for (std::string& card : Without(copy->cards, [](absl::string_view card) {
         return IsStructuralCard(card) && !Is(card, {"EXTNAME", "EXTVER", "EXTLEVEL", "HDUNAME", "HDUVER",
                                                     "HDULEVEL", "INHERIT", "DATE", "LONGSTRN", "COMMENT"});
       })) {
    cards.push_back(std::move(card));
  }
  copy->cards = std::move(cards);
  copy->data = TraceBytes(moved, own.flat(), coefficients);
  return absl::OkStatus();
}

// Replaces rows X and Y of the parameter table of version 2 by moved ones (null: unchanged). COEFF becomes a
// column of doubles, with as many coefficients for each fibre as the longer of the two has.
absl::Status ReplaceRows(const Hdu& hdu, const Psf& psf, const LegendreTable* x, const LegendreTable* y,
                         CopiedHdu* copy) {
  SPEXD_ASSIGN_OR_RETURN(const TableView view, TableView::Make(hdu));
  SPEXD_ASSIGN_OR_RETURN(const Column* name, view.Get("PARAM"));
  SPEXD_ASSIGN_OR_RETURN(const Column* coeff, view.Get("COEFF"));
  const int64_t own_count = coeff->repeat / psf.fibres;
  int64_t count = own_count;
  for (const LegendreTable* trace : {x, y}) {
    if (trace != nullptr) count = std::max(count, trace->coeff.shape(1));
  }
  std::string data;
  std::vector<double> own(static_cast<size_t>(coeff->repeat));
  for (int64_t row = 0; row < view.rows(); ++row) {
    const absl::string_view bytes =
        hdu.data.substr(static_cast<size_t>(row * view.row_bytes()), static_cast<size_t>(view.row_bytes()));
    const std::string parameter = view.Text(row, *name);
    const LegendreTable* const moved = parameter == "X" ? x : parameter == "Y" ? y : nullptr;
    SPEXD_RETURN_IF_ERROR(view.Numbers(row, *coeff, absl::MakeSpan(own)));
    absl::StrAppend(&data, bytes.substr(0, static_cast<size_t>(coeff->offset)));
    if (moved != nullptr) {
      data += TraceBytes(*moved, own, count);
    } else {
      for (int64_t k = 0; k < psf.fibres * count; ++k)
        AppendBigEndian(k % count < own_count ? own[k / count * own_count + k % count] : 0, &data);
    }
    absl::StrAppend(&data, bytes.substr(static_cast<size_t>(coeff->offset + coeff->width)));
  }
  const int64_t row_bytes = view.row_bytes() - coeff->width + psf.fibres * count * int64_t{sizeof(double)};
  absl::StrAppend(&data, view.heap());
  const int64_t number = coeff - view.columns().data() + 1;
  const auto of_column = [number](const char* stem) { return absl::StrCat(stem, number); };
  const std::string form = of_column("TFORM"), dim = of_column("TDIM");
  std::vector<std::string> cards;
  for (const std::string& card : Without(copy->cards, [&](absl::string_view card) {
         return Is(card, {"THEAP", dim, of_column("TSCAL"), of_column("TZERO"), of_column("TNULL"),
                          of_column("TDISP")});
       })) {
    if (Is(card, {"NAXIS1"})) {
      cards.push_back(IntegerCard("NAXIS1", row_bytes));
    } else if (Is(card, {"PCOUNT"})) {
      cards.push_back(IntegerCard("PCOUNT", static_cast<int64_t>(view.heap().size())));
    } else if (Is(card, {"LEGDEG"})) {
      cards.push_back(IntegerCard("LEGDEG", count - 1));
    } else if (Is(card, {form})) {
      cards.push_back(absl::StrFormat(
          "%-80s", absl::StrFormat("%-8s= '%-8s'", form, absl::StrCat(psf.fibres * count, "D"))));
      cards.push_back(absl::StrFormat(
          "%-80s", absl::StrFormat("%-8s= '%-8s'", dim, absl::StrFormat("(%d,%d)", count, psf.fibres))));
    } else {
      cards.push_back(card);
    }
  }
  copy->cards = std::move(cards);
  copy->data = std::move(data);
  return absl::OkStatus();
}

// Cards that state where the moved PSF comes from.
absl::StatusOr<std::vector<std::string>> OriginCards(const std::string& psf_name, const TraceReport& report,
                                                     const std::string& image_name) {
  FitsBuilder fits(0);
  fits.BeginImage("", DOUBLE_IMG, {});
  fits.AnnounceLongTexts({psf_name, image_name});
  fits.Text("IN_PSF", psf_name, "the PSF that was moved");
  if (!image_name.empty()) fits.Text("IN_IMAGE", image_name, "the frame that was measured");
  WriteTraceCards(report, fits);
  SPEXD_ASSIGN_OR_RETURN(const std::vector<std::string> cards, fits.HeaderCards());
  return Without(cards,
                 [](absl::string_view card) { return IsStructuralCard(card) && !Is(card, {"LONGSTRN"}); });
}

absl::Status WriteHdusTo(const std::string& path, const std::vector<CopiedHdu>& hdus) {
  std::vector<std::string> headers, data;
  for (const CopiedHdu& hdu : hdus) {
    std::string& header = headers.emplace_back();
    for (const std::string& card : hdu.cards) header += card;
    for (const absl::string_view card : {kChecksumCard, kDatasumCard, absl::string_view("END")})
      header += absl::StrFormat("%-80s", card);
    header.resize(static_cast<size_t>(FitsPadded(static_cast<int64_t>(header.size()))), ' ');
    data.push_back(hdu.data);
    data.back().resize(static_cast<size_t>(FitsPadded(static_cast<int64_t>(hdu.data.size()))), '\0');
  }
  std::vector<HduParts> parts;
  for (size_t k = 0; k < hdus.size(); ++k) parts.push_back({absl::MakeSpan(headers[k]), data[k], {}});
  return WriteFileAtomically(path, FileBytes(parts),
                             [&](const PieceWriter& write) { return WriteHdus(parts, 1, write); });
}

}  // namespace

absl::Status WriteMovedPsf(const Source& psf_file, const TraceReport& report, const std::string& path,
                           const std::stop_token& stop, const std::string& image_name) {
  SPEXD_ASSIGN_OR_RETURN(const Psf psf, ReadPsf(psf_file, stop));
  if (report.wave_min != psf.traces.x.wave_min || report.wave_max != psf.traces.x.wave_max) {
    return absl::InvalidArgumentError(absl::StrFormat(
        "%s: its traces are series from %.9g to %.9g Angstrom, the trace shifts from %.9g to "
        "%.9g: give the PSF that "
        "they were measured against",
        psf_file.name(), psf.traces.x.wave_min, psf.traces.x.wave_max, report.wave_min, report.wave_max));
  }
  const Psf moved = MovePsf(psf, report.shifts);
  const bool moves_x = report.moved && !report.shifts.x.series.empty();
  const bool moves_y = report.moved && !report.shifts.y.series.empty();
  SPEXD_ASSIGN_OR_RETURN(const FitsFile file, FitsFile::Parse(psf_file));
  SPEXD_ASSIGN_OR_RETURN(const PsfFileType type, FindPsfType(file));
  SPEXD_ASSIGN_OR_RETURN(const Hdu* parameters, ParameterHdu(file, type.version));
  const Hdu* const x = type.version == 3 ? file.Find({"XTRACE"}) : nullptr;
  const Hdu* const y = type.version == 3 ? file.Find({"YTRACE"}) : nullptr;
  std::vector<CopiedHdu> hdus;
  for (const Hdu& hdu : file.hdus()) {
    SPEXD_RETURN_IF_ERROR(CheckStop(stop));
    CopiedHdu& copy = hdus.emplace_back(CopyOf(hdu));
    const bool primary = hdus.size() == 1;
    if (moves_x && &hdu == x) SPEXD_RETURN_IF_ERROR(ReplaceImage(hdu, primary, moved.traces.x, &copy));
    if (moves_y && &hdu == y) SPEXD_RETURN_IF_ERROR(ReplaceImage(hdu, primary, moved.traces.y, &copy));
    if (type.version == 2 && &hdu == parameters && (moves_x || moves_y)) {
      SPEXD_RETURN_IF_ERROR(ReplaceRows(hdu, psf, moves_x ? &moved.traces.x : nullptr,
                                        moves_y ? &moved.traces.y : nullptr, &copy));
    }
  }
  SPEXD_ASSIGN_OR_RETURN(std::vector<std::string> origin, OriginCards(psf_file.name(), report, image_name));
  std::vector<std::string>& first = hdus.front().cards;
  first = Without(first, [](absl::string_view card) {
    return Is(card, {"IN_PSF", "IN_IMAGE"}) || IsTraceCard(card);
  });
  first.insert(first.end(), std::make_move_iterator(origin.begin()), std::make_move_iterator(origin.end()));
  return WriteHdusTo(path, hdus);
}

}  // namespace spexd
