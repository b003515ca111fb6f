#include "client/cli/terminal/trace_text.h"

#include <cmath>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "core/job/job_traces.h"

namespace spexd::cli {
namespace {

using nlohmann::json;

bool IsMeasured(const AxisShifts& axis) {
  return axis.status != ShiftStatus::kNone && axis.status != ShiftStatus::kRefused;
}

std::string DescribeAxis(const AxisShifts& axis) {
  std::string text = ShiftStatusName(axis.status);
  if (IsMeasured(axis))
    absl::StrAppend(&text, absl::StrFormat(" %+.3f pixels (%+.3f to %+.3f)", axis.mean, axis.min, axis.max));
  return text;
}

std::string FormatAxis(const char* name, const AxisShifts& axis) {
  std::string line = absl::StrFormat("%-4s  %-8s", name, ShiftStatusName(axis.status));
  if (IsMeasured(axis)) {
    absl::StrAppend(&line, absl::StrFormat("  %+8.4f  %+8.4f  %+8.4f  %8.4f", axis.mean, axis.min, axis.max,
                                           axis.corner_error));
  } else {
    for (int k = 0; k < 4; ++k) absl::StrAppend(&line, "         -");
  }
  return line + "\n";
}

json AxisJson(const AxisShifts& axis) {
  const auto number = [&axis](double value) {
    return IsMeasured(axis) && std::isfinite(value) ? json(value) : json();
  };
  return {{"status", ShiftStatusName(axis.status)},
          {"mean", number(axis.mean)},
          {"min", number(axis.min)},
          {"max", number(axis.max)},
          {"error", number(axis.corner_error)}};
}

bool AnyIsMeasured(const TraceReport& report) {
  return IsMeasured(report.shifts.x) || IsMeasured(report.shifts.y);
}

// Returns a note if measured shifts were too small to be applied; otherwise "".
const char* NoteOnNegligible(const TraceReport& report) {
  return AnyIsMeasured(report) && !report.moved ? "; too small to matter: the PSF's own traces serve" : "";
}

}  // namespace

std::string DescribeTraces(const TraceReport& report) {
  return absl::StrCat("x ", DescribeAxis(report.shifts.x), ", y ", DescribeAxis(report.shifts.y),
                      NoteOnNegligible(report));
}

std::string FormatTraces(const TraceReport& report, double seconds) {
  const TraceShifts& shifts = report.shifts;
  std::string text =
      absl::StrFormat("%-4s  %-8s  %8s  %8s  %8s  %8s\n", "axis", "status", "mean", "min", "max", "error");
  absl::StrAppend(&text, FormatAxis("x", shifts.x), FormatAxis("y", shifts.y));
  if (AnyIsMeasured(report))
    absl::StrAppend(&text, "Pixels, to be added to the PSF's traces", NoteOnNegligible(report), "\n");
  absl::StrAppend(&text, absl::StrFormat("%d passes, ", shifts.passes),
                  report.reference.empty()
                      ? std::string("no reference")
                      : absl::StrFormat("%d lines of %s", shifts.lines, report.reference),
                  absl::StrFormat(", %.2f s\n", seconds));
  const std::string refused = RefusedTraces(shifts);
  return refused.empty() ? text : absl::StrCat(text, "Refused: ", refused, "\n");
}

json TracesJson(const TraceReport& report) {
  return {{"x", AxisJson(report.shifts.x)}, {"y", AxisJson(report.shifts.y)},
          {"moved", report.moved},          {"reason", report.shifts.reason},
          {"reference", report.reference},  {"passes", report.shifts.passes},
          {"lines", report.shifts.lines}};
}

}  // namespace spexd::cli
