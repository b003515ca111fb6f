// Messages about the trace shifts of a frame, as text and as JSON.
#ifndef SPEXD_CLIENT_CLI_TERMINAL_TRACE_TEXT_H_
#define SPEXD_CLIENT_CLI_TERMINAL_TRACE_TEXT_H_

#include <nlohmann/json.hpp>
#include <string>

#include "core/model/traces/trace_shifts.h"

namespace spexd::cli {

// Returns the means and extremes: "x ok +0.213 pixels (+0.150 to +0.270), y refused".
std::string DescribeTraces(const TraceReport& report);

// Returns a table with a line for each axis, the reference, and the reason of a refusal.
std::string FormatTraces(const TraceReport& report, double seconds);

// Returns {x: {status, mean, min, max, error}, y: {...}, moved, reason, reference, passes, lines}, in pixels.
// Numbers of an axis that was not measured are null. `error` is AxisShifts::corner_error.
nlohmann::json TracesJson(const TraceReport& report);

}  // namespace spexd::cli

#endif  // SPEXD_CLIENT_CLI_TERMINAL_TRACE_TEXT_H_
