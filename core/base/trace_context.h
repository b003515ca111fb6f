// The trace that a call belongs to, as OpenTelemetry and other tracers name it.
#ifndef SPEXD_CORE_BASE_TRACE_CONTEXT_H_
#define SPEXD_CORE_BASE_TRACE_CONTEXT_H_

#include <string>

#include "absl/strings/string_view.h"

namespace spexd {

// The header's name, and the environment variable that carries its value from a program to those it starts.
inline constexpr char kTraceHeader[] = "traceparent";
inline constexpr char kTraceVariable[] = "TRACEPARENT";

// Lower-case hexadecimal digits; both "" without a trace.
struct TraceContext {
  std::string trace_id;  // 32
  std::string span_id;   // 16: the caller's span, to which the call belongs
};

// The trace of a W3C traceparent, "00-<trace id>-<span id>-<flags>". Both ids are "" unless `header` is valid
// by the recommendation "Trace Context", level 1, which leaves room behind the flags for later versions.
TraceContext ParseTraceparent(absl::string_view header);

// What a caller sends of the `header` that it was given: version 00, of 55 characters; "" unless it is valid.
std::string SentTraceparent(absl::string_view header);

}  // namespace spexd

#endif  // SPEXD_CORE_BASE_TRACE_CONTEXT_H_
