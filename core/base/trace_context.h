// The trace that a call belongs to, in the terms of OpenTelemetry and other tracers.
#ifndef SPEXD_CORE_BASE_TRACE_CONTEXT_H_
#define SPEXD_CORE_BASE_TRACE_CONTEXT_H_

#include <string>

#include "absl/strings/string_view.h"

namespace spexd {

// The name of the header, and the environment variable that carries its value to child programs.
inline constexpr char kTraceHeader[] = "traceparent";
inline constexpr char kTraceVariable[] = "TRACEPARENT";

// Ids in lower-case hexadecimal digits. Both are "" without a trace.
struct TraceContext {
  std::string trace_id;  // 32 digits
  std::string span_id;   // 16 digits: the caller's span, to which the call belongs
};

// Parses a W3C traceparent, "00-<trace id>-<span id>-<flags>". Both ids are "" unless `header` is valid by
// the recommendation "Trace Context", level 1, which lets later versions append fields.
TraceContext ParseTraceparent(absl::string_view header);

// The header that a caller sends on: version 00, 55 characters. "" unless `header` is valid.
std::string SentTraceparent(absl::string_view header);

}  // namespace spexd

#endif  // SPEXD_CORE_BASE_TRACE_CONTEXT_H_
