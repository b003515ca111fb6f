#include "core/fits/traces/trace_table.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <iterator>
#include <optional>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "core/base/status_macros.h"
#include "core/fits/hdu/cards.h"
#include "core/fits/hdu/table.h"
#include "core/model/psf.h"

namespace spexd {
namespace {

constexpr char kHdu[] = "TRACESHIFT";
constexpr int kWaves = 5;

// An axis of a report and the letter that its keywords end in.
struct Axis {
  AxisShifts TraceShifts::*shifts;
  char letter;
};
constexpr Axis kAxes[] = {{&TraceShifts::x, 'X'}, {&TraceShifts::y, 'Y'}};

struct NumberOfAxis {
  const char* stem;  // the keyword without the letter
  double AxisShifts::*value;
  const char* comment;
};
constexpr NumberOfAxis kNumbers[] = {
    {"MEAND", &AxisShifts::mean, "[pixel] mean trace shift over the PSF's fibres"},
    {"MIND", &AxisShifts::min, "[pixel] smallest trace shift"},
    {"MAXD", &AxisShifts::max, "[pixel] largest trace shift"},
    {"ERRD", &AxisShifts::corner_error, "[pixel] its largest error at CCD corners"},
};

std::string Keyword(const char* stem, char letter) { return absl::StrCat(stem, std::string(1, letter)); }

std::string Coefficient(char letter, int64_t a, int64_t b) {
  return absl::StrFormat("C%c%d_%d", letter, a, b);
}
std::string Covariance(char letter, int64_t k, int64_t l) {
  return absl::StrFormat("V%c%d_%d", letter, k, l);
}

double ScaledWave(int k) { return 2.0 * k / (kWaves - 1) - 1; }

void WriteSeries(const AxisShifts& axis, char letter, FitsBuilder& fits) {
  for (int64_t a = 0; a < axis.series.shape(0); ++a) {
    for (int64_t b = 0; b < axis.series.shape(1); ++b) {
      fits.Number(Coefficient(letter, a, b).c_str(), axis.series(a, b), "[pixel] of L_a(u) L_b(t)");
    }
  }
  for (int64_t k = 0; k < axis.covariance.shape(0); ++k) {
    for (int64_t l = 0; l <= k; ++l) {
      fits.Number(Covariance(letter, k, l).c_str(), axis.covariance(k, l), "covariance of coefficients");
    }
  }
  fits.Integer(Keyword("USED", letter).c_str(), axis.used, "measurements in the fit");
  fits.Integer(Keyword("CLIPPED", letter).c_str(), axis.clipped, "outliers left out of it");
}

int CountOf(const Hdu& hdu, const std::string& keyword) {
  return static_cast<int>(std::clamp<int64_t>(hdu.Integer(keyword).value_or(0), 0, INT32_MAX));
}

absl::Status ReadSeries(const Hdu& hdu, char letter, AxisShifts* axis) {
  constexpr int64_t kTerms = kMaxShiftDegree + 1;
  int64_t over_u = 0, over_t = 0;
  for (int64_t a = 0; a < kTerms; ++a) {
    for (int64_t b = 0; b < kTerms; ++b) {
      if (!hdu.Has(Coefficient(letter, a, b))) continue;
      over_u = std::max(over_u, a + 1);
      over_t = std::max(over_t, b + 1);
    }
  }
  if (over_u == 0) return absl::OkStatus();
  axis->series.Assign({over_u, over_t});
  for (int64_t a = 0; a < over_u; ++a) {
    for (int64_t b = 0; b < over_t; ++b) {
      SPEXD_ASSIGN_OR_RETURN(axis->series(a, b), hdu.RequireNumber(Coefficient(letter, a, b)));
    }
  }
  const int64_t terms = over_u * over_t;
  axis->covariance.Assign({terms, terms});
  for (int64_t k = 0; k < terms; ++k) {
    for (int64_t l = 0; l <= k; ++l) {
      SPEXD_ASSIGN_OR_RETURN(axis->covariance(k, l), hdu.RequireNumber(Covariance(letter, k, l)));
      axis->covariance(l, k) = axis->covariance(k, l);
    }
  }
  axis->used = CountOf(hdu, Keyword("USED", letter));
  axis->clipped = CountOf(hdu, Keyword("CLIPPED", letter));
  return absl::OkStatus();
}

// Reads an axis from the cards of the frame's header and the table `hdu`.
absl::Status ReadAxis(const Hdu& hdu, const std::vector<std::string>& cards, char letter, AxisShifts* axis) {
  const std::string keyword = Keyword("TSSTAT", letter);
  const absl::StatusOr<ShiftStatus> status = ParseShiftStatus(FindString(cards, keyword).value_or(""));
  if (!status.ok())
    return hdu.Error(absl::StrCat(keyword, " in the frame's header: ", status.status().message()));
  axis->status = *status;
  SPEXD_RETURN_IF_ERROR(ReadSeries(hdu, letter, axis));
  if (axis->series.empty()) return absl::OkStatus();
  for (const NumberOfAxis& number : kNumbers) {
    const std::string name = Keyword(number.stem, letter);
    const std::optional<double> value = FindNumber(cards, name);
    if (!value.has_value())
      return hdu.Error(absl::StrCat(name, " in the frame's header is missing or not a number"));
    axis->*number.value = *value;
  }
  return absl::OkStatus();
}

}  // namespace

void WriteTraceCards(const TraceReport& report, FitsBuilder& fits) {
  for (const Axis& axis : kAxes) {
    const AxisShifts& shifts = report.shifts.*axis.shifts;
    fits.Text(Keyword("TSSTAT", axis.letter).c_str(), ShiftStatusName(shifts.status),
              "status of trace shifts");
    if (shifts.series.empty()) continue;
    for (const NumberOfAxis& number : kNumbers)
      fits.Number(Keyword(number.stem, axis.letter).c_str(), shifts.*number.value, number.comment);
  }
  fits.Logical("TSMOVED", report.moved, "whether traces were moved by these shifts");
}

bool HasTraceCards(const std::vector<std::string>& cards) {
  return std::any_of(cards.begin(), cards.end(),
                     [](const std::string& card) { return CardKeyword(card) == "TSSTATX"; });
}

bool IsTraceCard(absl::string_view card) {
  const absl::string_view keyword = CardKeyword(card);
  if (keyword == "TSMOVED") return true;
  for (const Axis& axis : kAxes) {
    if (keyword == Keyword("TSSTAT", axis.letter)) return true;
    for (const NumberOfAxis& number : kNumbers) {
      if (keyword == Keyword(number.stem, axis.letter)) return true;
    }
  }
  return false;
}

void WriteTraceTable(const TraceReport& report, absl::Span<const int64_t> fibres, FitsBuilder& fits) {
  const std::vector<std::string> names = {"FIBER", "U", "WAVE", "DX", "DY", "ERRDX", "ERRDY"};
  fits.BeginTable(kHdu, static_cast<int64_t>(fibres.size()), names,
                  {"1J", "1D", "5D", "5D", "5D", "5D", "5D"});
  fits.Text("TUNIT3", "Angstrom", "");
  for (const char* unit : {"TUNIT4", "TUNIT5", "TUNIT6", "TUNIT7"}) fits.Text(unit, "pixel", "");
  fits.AnnounceLongTexts({report.reference, report.shifts.reason});
  if (!report.reference.empty()) fits.Text("TRACEREF", report.reference, "reference spectrum");
  if (!report.shifts.reason.empty()) fits.Text("REASON", report.shifts.reason, "why an axis is refused");
  fits.Integer("PASSES", report.shifts.passes, "passes over the image");
  fits.Integer("LINES", report.shifts.lines, "lines of the reference seen in the frame");
  for (const Axis& axis : kAxes) WriteSeries(report.shifts.*axis.shifts, axis.letter, fits);
  std::vector<double> wave;
  std::vector<double> shift[std::size(kAxes)], error[std::size(kAxes)];
  for (const double u : report.u) {
    for (int k = 0; k < kWaves; ++k) {
      const double t = ScaledWave(k);
      wave.push_back(k == kWaves - 1 ? report.wave_max
                                     : report.wave_min + 0.5 * (t + 1) * (report.wave_max - report.wave_min));
      for (size_t axis = 0; axis < std::size(kAxes); ++axis) {
        const AxisShifts& shifts = report.shifts.*kAxes[axis].shifts;
        shift[axis].push_back(EvaluateShift(shifts.series, u, t));
        error[axis].push_back(shifts.covariance.empty() ? NAN : ShiftError(shifts, u, t));
      }
    }
  }
  fits.ColumnValues(1, 1, fibres);
  fits.ColumnValues(2, 1, absl::MakeConstSpan(report.u));
  fits.ColumnValues(3, 1, absl::MakeConstSpan(wave));
  for (size_t axis = 0; axis < std::size(kAxes); ++axis) {
    fits.ColumnValues(4 + static_cast<int>(axis), 1, absl::MakeConstSpan(shift[axis]));
    fits.ColumnValues(6 + static_cast<int>(axis), 1, absl::MakeConstSpan(error[axis]));
  }
}

absl::StatusOr<std::optional<TraceReport>> ReadTraceTable(const FitsFile& file,
                                                          const std::vector<std::string>& cards,
                                                          int64_t fibres) {
  const Hdu* hdu = file.Find({kHdu});
  if (hdu == nullptr || !HasTraceCards(cards)) return std::nullopt;
  SPEXD_ASSIGN_OR_RETURN(const TableView view, TableView::Make(*hdu));
  SPEXD_ASSIGN_OR_RETURN(const Column* u, view.Get("U"));
  SPEXD_ASSIGN_OR_RETURN(const Column* wave, view.Get("WAVE"));
  if (view.rows() != fibres || u->repeat != 1 || wave->repeat != kWaves) {
    return hdu->Error(
        absl::StrFormat("has %d rows with %d values of U and %d of WAVE, must be %d rows, one for "
                        "each spectrum, with 1 and %d",
                        view.rows(), u->repeat, wave->repeat, fibres, kWaves));
  }
  TraceReport report;
  for (const Axis& axis : kAxes) {
    SPEXD_RETURN_IF_ERROR(ReadAxis(*hdu, cards, axis.letter, &(report.shifts.*axis.shifts)));
  }
  report.shifts.reason = hdu->String("REASON").value_or("");
  report.shifts.passes = CountOf(*hdu, "PASSES");
  report.shifts.lines = CountOf(*hdu, "LINES");
  report.moved = std::any_of(cards.begin(), cards.end(), [](const std::string& card) {
    return CardKeyword(card) == "TSMOVED" && CardLogical(card).value_or(false);
  });
  report.reference = hdu->String("TRACEREF").value_or("");
  report.u.resize(static_cast<size_t>(fibres));
  for (int64_t row = 0; row < fibres; ++row) {
    double& value = report.u[static_cast<size_t>(row)];
    SPEXD_RETURN_IF_ERROR(view.Numbers(row, *u, absl::MakeSpan(&value, 1)));
    if (!std::isfinite(value))
      return hdu->Error(absl::StrFormat("U is %g in row %d, must be finite", value, row));
  }
  std::array<double, kWaves> domain;
  SPEXD_RETURN_IF_ERROR(view.Numbers(0, *wave, absl::MakeSpan(domain)));
  report.wave_min = domain.front();
  report.wave_max = domain.back();
  if (!IsDomain(report.wave_min, report.wave_max)) {
    return hdu->Error(absl::StrFormat("WAVE goes from %g to %g Angstrom, which is no domain of a series",
                                      report.wave_min, report.wave_max));
  }
  return report;
}

}  // namespace spexd
