// Calls that run a job: from the request to the outcome of its events, on one server after another.
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

// What came from a server cannot be true: DataLoss, so that the call is made again.
inline absl::Status Damaged(const std::string& what) {
  return absl::DataLossError(absl::StrCat("the server's answer is damaged: ", what));
}

// Gives the events of a call whose request was sent (`sent`: an error of this side, if it could not be) to
// `assembler`, which has Add(event) and accepted(). `finish` takes the outcome from it once the call ended
// with OK, and may find it damaged.
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
  // So gRPC answers a call that comes while its server shuts down. (A stop of this side is looked at later.)
  if (absl::IsCancelled(result.status) && !assembler->accepted()) {
    result.status = absl::UnavailableError(
        absl::StrCat("the call was cancelled before the job was taken: ", result.status.message()));
  }
  if (result.status.ok()) result.status = finish();
  return AttemptOf(result, assembler->accepted());
}

// TryServers with a stream of each server, which `open` begins and `run` takes to its end. A stop cancels it.
// DeadlineExceeded says so if it is the job's.
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
