#include "core/model/traces/trace_shifts.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/types/span.h"
#include "core/base/status_macros.h"
#include "core/base/text.h"
#include "core/model/traces/legendre.h"

namespace spexd {
namespace {

// Parses a name: the value at the name's place in `names`. `what`: the kind of name, for the error message.
template <typename T>
absl::StatusOr<T> ParseName(const char* what, absl::string_view name, absl::Span<const char* const> names) {
  const auto found = std::find(names.begin(), names.end(), name);
  if (found != names.end()) return static_cast<T>(found - names.begin());
  return absl::InvalidArgumentError(
      absl::StrFormat("%s is \"%s\", must be %s", what, ForMessage(name), absl::StrJoin(names, ", ")));
}

}  // namespace

double EvaluateShift(const ShiftSeries& series, double u, double t) {
  double sum = 0;
  std::vector<double> over_u(static_cast<size_t>(series.shape(0))),
      over_t(static_cast<size_t>(series.shape(1)));
  LegendreValues(u, static_cast<int>(over_u.size()), over_u.data());
  LegendreValues(t, static_cast<int>(over_t.size()), over_t.data());
  for (int64_t a = 0; a < series.shape(0); ++a) {
    for (int64_t b = 0; b < series.shape(1); ++b) sum += series(a, b) * over_u[a] * over_t[b];
  }
  return sum;
}

absl::Status CheckTraceDegrees(const TraceDegrees& degrees) {
  for (const std::array<int, 2>& axis : {degrees.x, degrees.y}) {
    for (const int degree : axis) {
      if (degree >= 0 && degree <= kMaxShiftDegree) continue;
      return absl::InvalidArgumentError(absl::StrFormat(
          "trace_degrees: %d is no degree of a series of shifts, must be 0 to %d", degree, kMaxShiftDegree));
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<TraceDegrees> ParseTraceDegrees(absl::string_view text) {
  std::vector<int> degrees;
  for (absl::string_view word : absl::StrSplit(text, ',')) {
    int degree = 0;
    if (!absl::SimpleAtoi(word, &degree)) break;
    degrees.push_back(degree);
  }
  if (degrees.size() != 4 || std::count(text.begin(), text.end(), ',') != 3) {
    return absl::InvalidArgumentError(
        absl::StrFormat("trace_degrees is %s, must be four degrees from 0 to %d, such as 2,2,2,1: of the "
                        "shifts in x over fibres and "
                        "over wavelength, and of those in y",
                        ForMessage(text), kMaxShiftDegree));
  }
  const TraceDegrees parsed = {.x = {degrees[0], degrees[1]}, .y = {degrees[2], degrees[3]}};
  SPEXD_RETURN_IF_ERROR(CheckTraceDegrees(parsed));
  return parsed;
}

absl::StatusOr<TraceAxes> ParseTraceAxes(absl::string_view name) {
  return ParseName<TraceAxes>("trace_shifts", name, kTraceAxesNames);
}

absl::StatusOr<ShiftStatus> ParseShiftStatus(absl::string_view name) {
  return ParseName<ShiftStatus>("the status of trace shifts", name, kShiftStatusNames);
}

double ShiftError(const AxisShifts& axis, double u, double t) {
  const int64_t terms = axis.covariance.shape(0);
  if (terms == 0) return 0;
  const int64_t over_t = axis.series.shape(1), over_u = terms / over_t;
  std::vector<double> basis_u(static_cast<size_t>(over_u)), basis_t(static_cast<size_t>(over_t));
  LegendreValues(u, static_cast<int>(over_u), basis_u.data());
  LegendreValues(t, static_cast<int>(over_t), basis_t.data());
  double variance = 0;
  for (int64_t k = 0; k < terms; ++k) {
    for (int64_t l = 0; l < terms; ++l) {
      variance += basis_u[k / over_t] * basis_t[k % over_t] * axis.covariance(k, l) * basis_u[l / over_t] *
                  basis_t[l % over_t];
    }
  }
  return std::sqrt(std::max(variance, 0.0));
}

}  // namespace spexd
