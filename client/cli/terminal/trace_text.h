// What is said about the trace shifts of a frame: to people and as JSON.
#ifndef SPEXD_CLIENT_CLI_TERMINAL_TRACE_TEXT_H_
#define SPEXD_CLIENT_CLI_TERMINAL_TRACE_TEXT_H_

#include <nlohmann/json.hpp>
#include <string>

#include "core/model/traces/trace_shifts.h"

namespace spexd::cli {

// "x ok +0.213 pixels (+0.150 to +0.270), y refused": the means and extremes.
std::string DescribeTraces(const TraceReport& report);

// A table with a line for each axis, what was measured against, and the reason of a refusal.
std::string FormatTraces(const TraceReport& report, double seconds);

// {x: {status, mean, min, max, error}, y: the same, moved, reason, reference, passes, lines}. Pixels; numbers
// of an axis that was not measured are null. `error` is AxisShifts::corner_error.
nlohmann::json TracesJson(const TraceReport& report);

}  // namespace spexd::cli

#endif  // SPEXD_CLIENT_CLI_TERMINAL_TRACE_TEXT_H_
