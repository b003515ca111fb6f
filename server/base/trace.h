// The trace of a call, and the log fields with it.
#ifndef SPEXD_SERVER_BASE_TRACE_H_
#define SPEXD_SERVER_BASE_TRACE_H_

#include <iterator>
#include <string>

#include "core/base/trace_context.h"
#include "grpcpp/server_context.h"
#include "server/base/json_fields.h"

namespace spexd {

// Returns the trace of the client's W3C traceparent; none if it is missing, invalid or sent more than once.
inline TraceContext TraceOf(const grpc::ServerContextBase& context) {
  const auto [first, end] = context.client_metadata().equal_range(kTraceHeader);
  if (first == end || std::next(first) != end) return {};
  return ParseTraceparent({first->second.data(), first->second.size()});
}

// Returns the first fields of each log line of a job.
inline JsonFields JobFields(const std::string& job_id, const TraceContext& trace) {
  JsonFields fields = {{"job", job_id}};
  if (!trace.trace_id.empty()) fields["trace_id"] = trace.trace_id;
  if (!trace.span_id.empty()) fields["span_id"] = trace.span_id;
  return fields;
}

}  // namespace spexd

#endif  // SPEXD_SERVER_BASE_TRACE_H_
