#include "proto/trace_report.h"

#include <algorithm>
#include <bit>
#include <climits>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <string>

#include "absl/strings/str_format.h"
#include "absl/types/span.h"
#include "core/base/status_macros.h"
#include "core/model/psf.h"

namespace spexd {
namespace {

static_assert(std::endian::native == std::endian::little, "arrays travel as they lie in memory");
static_assert(static_cast<int>(ShiftStatus::kNone) == v1::AxisShifts::NONE &&
              static_cast<int>(ShiftStatus::kOk) == v1::AxisShifts::OK &&
              static_cast<int>(ShiftStatus::kWeak) == v1::AxisShifts::WEAK &&
              static_cast<int>(ShiftStatus::kRelative) == v1::AxisShifts::RELATIVE &&
              static_cast<int>(ShiftStatus::kRefused) == v1::AxisShifts::REFUSED &&
              static_cast<int>(ShiftStatus::kRefused) == v1::AxisShifts::Status_MAX);

constexpr uint32_t kMaxTerms = kMaxShiftDegree + 1;

bool IsFinite(absl::Span<const double> values) {
  return std::all_of(values.begin(), values.end(), [](double value) { return std::isfinite(value); });
}

void SetAxis(const AxisShifts& axis, v1::AxisShifts* message) {
  message->set_status(static_cast<v1::AxisShifts::Status>(axis.status));
  message->set_u_terms(static_cast<uint32_t>(axis.series.shape(0)));
  message->set_t_terms(static_cast<uint32_t>(axis.series.shape(1)));
  message->mutable_coefficients()->Add(axis.series.flat().begin(), axis.series.flat().end());
  message->mutable_covariance()->Add(axis.covariance.flat().begin(), axis.covariance.flat().end());
  message->set_corner_error(axis.corner_error);
  message->set_mean(axis.mean);
  message->set_min(axis.min);
  message->set_max(axis.max);
  message->set_used(static_cast<uint32_t>(axis.used));
  message->set_clipped(static_cast<uint32_t>(axis.clipped));
}

absl::Status CheckCount(const char* name, uint32_t count) {
  if (count <= INT_MAX) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrFormat("%s is %d, must be at most %d", name, count, INT_MAX));
}

absl::Status CheckAxis(const v1::AxisShifts& axis) {
  if (!v1::AxisShifts::Status_IsValid(axis.status())) {
    return absl::InvalidArgumentError(absl::StrFormat("status is %d, must be 0 to %d",
                                                      static_cast<int>(axis.status()),
                                                      static_cast<int>(v1::AxisShifts::Status_MAX)));
  }
  const bool measured = axis.status() != v1::AxisShifts::NONE && axis.status() != v1::AxisShifts::REFUSED;
  const uint32_t rows = axis.u_terms(), columns = axis.t_terms();
  const uint32_t min = measured ? 1 : 0, max = measured ? kMaxTerms : 0;
  if (std::min(rows, columns) < min || std::max(rows, columns) > max) {
    return absl::InvalidArgumentError(
        absl::StrFormat("a series of %d x %d terms with status %s, each must be %d to %d", rows, columns,
                        ShiftStatusName(static_cast<ShiftStatus>(axis.status())), min, max));
  }
  const int count = static_cast<int>(rows * columns);
  if (axis.coefficients_size() != count || axis.covariance_size() != count * count) {
    return absl::InvalidArgumentError(
        absl::StrFormat("%d coefficients and %d covariances of a series of %d x %d terms",
                        axis.coefficients_size(), axis.covariance_size(), rows, columns));
  }
  if (!IsFinite(axis.coefficients()) || !IsFinite(axis.covariance()) ||
      !IsFinite({axis.corner_error(), axis.mean(), axis.min(), axis.max()})) {
    return absl::InvalidArgumentError("a number that is not finite");
  }
  SPEXD_RETURN_IF_ERROR(CheckCount("used", axis.used()));
  return CheckCount("clipped", axis.clipped());
}

absl::StatusOr<AxisShifts> AxisOf(const char* name, const v1::AxisShifts& message) {
  if (const absl::Status good = CheckAxis(message); !good.ok())
    return absl::InvalidArgumentError(absl::StrFormat("trace_shifts.%s: %s", name, good.message()));
  AxisShifts axis;
  axis.status = static_cast<ShiftStatus>(message.status());
  const int64_t rows = message.u_terms(), columns = message.t_terms(), count = rows * columns;
  if (count > 0) {
    axis.series.AssignFrom({rows, columns}, message.coefficients().data());
    axis.covariance.AssignFrom({count, count}, message.covariance().data());
  }
  axis.corner_error = message.corner_error();
  axis.mean = message.mean();
  axis.min = message.min();
  axis.max = message.max();
  axis.used = static_cast<int>(message.used());
  axis.clipped = static_cast<int>(message.clipped());
  return axis;
}

}  // namespace

void SetTraceReport(const TraceReport& report, v1::TraceShifts* message) {
  SetAxis(report.shifts.x, message->mutable_x());
  SetAxis(report.shifts.y, message->mutable_y());
  message->set_reason(report.shifts.reason);
  message->set_passes(static_cast<uint32_t>(report.shifts.passes));
  message->set_lines(static_cast<uint32_t>(report.shifts.lines));
  message->set_moved(report.moved);
  message->set_reference(report.reference);
  message->set_wave_min(report.wave_min);
  message->set_wave_max(report.wave_max);
  message->set_u(report.u.data(), report.u.size() * sizeof(double));
}

absl::StatusOr<TraceReport> TraceReportOf(const v1::TraceShifts& message, int fibres) {
  TraceReport report;
  SPEXD_ASSIGN_OR_RETURN(report.shifts.x, AxisOf("x", message.x()));
  SPEXD_ASSIGN_OR_RETURN(report.shifts.y, AxisOf("y", message.y()));
  if (message.u().size() != static_cast<size_t>(fibres) * sizeof(double)) {
    return absl::InvalidArgumentError(absl::StrFormat(
        "trace_shifts.u has %d bytes, must have 8 for each of %d fibres", message.u().size(), fibres));
  }
  report.u.resize(static_cast<size_t>(fibres));
  if (fibres > 0) std::memcpy(report.u.data(), message.u().data(), message.u().size());
  if (!IsFinite(report.u)) return absl::InvalidArgumentError("trace_shifts.u: a number that is not finite");
  if (!IsDomain(message.wave_min(), message.wave_max())) {
    return absl::InvalidArgumentError(
        absl::StrFormat("trace_shifts: wavelengths %g to %g are no domain of a series", message.wave_min(),
                        message.wave_max()));
  }
  SPEXD_RETURN_IF_ERROR(CheckCount("trace_shifts.passes", message.passes()));
  SPEXD_RETURN_IF_ERROR(CheckCount("trace_shifts.lines", message.lines()));
  report.shifts.reason = message.reason();
  report.shifts.passes = static_cast<int>(message.passes());
  report.shifts.lines = static_cast<int>(message.lines());
  report.moved = message.moved();
  report.reference = message.reference();
  report.wave_min = message.wave_min();
  report.wave_max = message.wave_max();
  return report;
}

}  // namespace spexd
