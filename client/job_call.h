// The calls that run a job, on one server after another, and the reading of their events.
#ifndef SPEXD_CLIENT_JOB_CALL_H_
#define SPEXD_CLIENT_JOB_CALL_H_

#include <memory>
#include <stop_token>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "client/attempts.h"
#include "client/connection/connection.h"
#include "client/connection/events_ahead.h"
#include "client/job.h"

namespace spexd::client {

// Returns the DataLoss of an answer that cannot be right, which leads to another attempt.
inline absl::Status Damaged(const std::string& what) {
  return absl::DataLossError(absl::StrCat("the server's answer is damaged: ", what));
}

// Reads the events of a call to its end and gives them to `assembler`, which has Add(event) and accepted().
// `sent`: the client's own error in sending the request, if any. `finish` is called when the call has ended
// with OK. It takes the outcome from the assembler and may return DataLoss.
template <typename Assembler, typename Finish>
Attempt ReadCall(const absl::Status& sent, EventStream* stream, Assembler* assembler, const Finish& finish) {
  absl::Status local = sent;
  if (local.ok()) {
    EventsAhead events(stream);
    v1::ExtractEvent event;
    while (local.ok() && events.Next(&event)) local = assembler->Add(event);
  }
  if (!local.ok()) stream->Cancel();
  CallResult result = stream->Finish();
  if (!local.ok()) result = {local, result.retry_delay};
  // gRPC answers a call with CANCELLED if its server is shutting down. (A stop request of the client is
  // checked later.)
  if (absl::IsCancelled(result.status) && !assembler->accepted()) {
    result.status = absl::UnavailableError(
        absl::StrCat("the call was cancelled before the job was taken: ", result.status.message()));
  }
  if (result.status.ok()) result.status = finish();
  return AttemptOf(result, assembler->accepted());
}

// Calls TryServers with attempts on streams: `open` begins a stream on a server and `run` makes an attempt on
// it. A stop request cancels the stream. The message of DeadlineExceeded says if the job's deadline has
// passed.
template <typename Open, typename Run>
absl::Status TryCalls(const ServerSource& find, const AttemptLimits& limits, JobObserver* observer,
                      const std::stop_token& stop, const Open& open, const Run& run) {
  bool late = false;
  const absl::Status status = TryServers(find, limits, observer, stop, [&](Connection* server) {
    const auto stream = open(server);
    const std::stop_callback cancel(stop, [&stream] { stream->Cancel(); });
    const Attempt attempt = run(server, stream.get());
    late = absl::IsDeadlineExceeded(attempt.status);
    return attempt;
  });
  if (status.ok() || !late) return status;
  return absl::DeadlineExceededError(
      absl::StrCat("the job was not done by its deadline (", status.message(), ")"));
}

}  // namespace spexd::client

#endif  // SPEXD_CLIENT_JOB_CALL_H_
