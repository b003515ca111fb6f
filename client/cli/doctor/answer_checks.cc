#include "client/cli/doctor/answer_checks.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "client/cli/flags/where_flags.h"
#include "client/upload/psf_upload.h"
#include "core/base/build_version.h"
#include "core/base/version.h"

namespace spexd::cli {
namespace {

using client::Clock;

constexpr double kMaxClockSeconds = 5;

double Gib(uint64_t bytes) { return static_cast<double>(bytes) / kGiB; }

Finding Unknown(const absl::Status& status) {
  return Bad(
      "caller", status,
      "the operator lists callers in --identities: check the token (--token-file), the client certificate "
      "(--tls-cert) or, on a Unix socket, your user id; spexd reads the list again at SIGHUP");
}

// Returns the release of a version: "0.1.0" for "0.1.0+e87ffdf12ab3".
std::string ReleaseOf(const std::string& version) {
  return std::vector<std::string>(absl::StrSplit(version, '+'))[0];
}

Finding CheckVersion(const std::string& theirs) {
  const std::string ours = BuildVersion();
  if (theirs == ours) return Good("version", absl::StrCat(theirs, ", as this spex"));
  const std::string found = absl::StrCat(theirs, ", this spex is ", ours);
  if (ReleaseOf(theirs) == kVersion) return Good("version", found);
  return Doubtful("version", found,
                  "install the same version on both sides: results and products may differ");
}

Finding CheckEngine(const v1::EngineStatus& engine) {
  const std::string name = absl::StrCat("engine ", engine.kind());
  if (!engine.runnable()) {
    if (engine.kind() == "cuda")
      return Good(name, absl::StrCat("not used: ", WithoutPlaces(engine.detail())));
    return Bad(name, absl::UnavailableError(engine.detail()), "restart the server; its log has the reason");
  }
  std::string found = engine.detail();
  std::vector<std::string> failed;
  for (const v1::DeviceInfo& device : engine.devices()) {
    absl::StrAppendFormat(&found, "; device %d: %s, %.1f GiB", device.index(), device.name(),
                          Gib(device.memory_bytes()));
    if (!device.healthy()) failed.push_back(absl::StrCat(device.index(), " (", device.detail(), ")"));
  }
  if (failed.empty()) return Good(name, found);
  return Doubtful(name, absl::StrCat(found, "; FAILED: ", absl::StrJoin(failed, ", ")),
                  "drain and restart the server at a convenient time (docs/runbook.md)");
}

Finding CheckQueue(const v1::Capabilities& status) {
  const std::string found = absl::StrFormat(
      "%d running of at most %d, %d queued of at most %d; a file of at most %.1f GiB, %.1f GiB for warm PSFs",
      status.jobs_running(), status.limits().max_running_jobs(), status.jobs_queued(),
      status.limits().max_queued_jobs(), Gib(status.limits().max_upload_bytes()),
      Gib(status.limits().psf_cache_bytes()));
  if (status.jobs_queued() < status.limits().max_queued_jobs()) return Good("jobs", found);
  return Doubtful("jobs", found, "the queue is full: spex waits and tries again; name further servers");
}

Finding CheckRoots(const v1::Capabilities& status) {
  if (status.allowed_roots().empty())
    return Good("roots", "none: the server opens no files of its own, give --upload");
  return Good("roots", absl::StrCat("files below ", absl::StrJoin(status.allowed_roots(), ", "),
                                    " may be named, others need --upload"));
}

double Seconds(Clock::time_point time) {
  return std::chrono::duration<double>(time.time_since_epoch()).count();
}

Finding CheckClock(const TimedCapabilities& answer) {
  const double theirs = answer.capabilities->server_time();
  if (theirs == 0) return Good("clock", "not told: the server is too old for that");
  // These are the least differences, since the answer may have been written at any time during the call.
  const double ahead = theirs - Seconds(answer.answered), behind = Seconds(answer.asked) - theirs;
  const double difference = std::max({ahead, behind, 0.0});
  if (difference <= kMaxClockSeconds)
    return Good("clock", absl::StrFormat("differs from this machine's by %.1f s", difference));
  return Doubtful(
      "clock",
      absl::StrFormat("%.1f s %s this machine's", difference, ahead > behind ? "ahead of" : "behind"),
      "set both clocks (chrony, systemd-timesyncd): certificates, deadlines and times of jobs "
      "depend on them");
}

// Whether LoadPsf opened the path. It then fails because the file is no trace reference.
bool WasOpened(const absl::Status& status) {
  if (status.ok()) return true;
  if (!absl::IsInvalidArgument(status)) return false;
  return !absl::StartsWith(status.message(), "path ") ||
         absl::StrContains(status.message(), ", the limit is ");
}

Finding CheckPath(client::Connection* connection, const std::string& path,
                  client::Connection::Deadline deadline) {
  // The file is loaded as a trace reference. Images and PSFs are none, so the server keeps nothing of them.
  const absl::Status status =
      client::LoadPsf(connection, path, {.kind = v1::WARM_KIND_TRACE_REFERENCE}, deadline).status();
  if (WasOpened(status)) return Good("path", absl::StrCat(path, ": the server can open it"));
  if (absl::IsNotFound(status))
    return Bad("path", status,
               "the server sees another file system: check the mount there, or give --upload");
  return Bad("path", status, "");
}

}  // namespace

TimedCapabilities AskCapabilities(client::Connection* connection, client::Connection::Deadline deadline) {
  const Clock::time_point asked = Clock::now();
  absl::StatusOr<v1::Capabilities> capabilities = connection->GetCapabilities(deadline);
  return {std::move(capabilities), asked, Clock::now()};
}

bool CheckCaller(client::Connection* connection, const TimedCapabilities& answer,
                 client::Connection::Deadline deadline, FindingList* findings) {
  const absl::Status read = answer.capabilities.status();
  if (absl::IsUnauthenticated(read)) {
    findings->push_back(Unknown(read));
    return false;
  }
  if (absl::IsUnimplemented(read)) {
    findings->push_back(Bad("answer", read, "what listens there is no spexd, or one of another protocol"));
    return false;
  }
  if (!read.ok() && !absl::IsPermissionDenied(read)) {
    findings->push_back(Bad("answer", read, ""));
    return false;
  }
  // No file has this hash, so UnloadPsf changes nothing but shows whether the caller may submit.
  const absl::Status submit = connection->UnloadPsf(std::string(64, '0'), v1::WARM_KIND_PSF, deadline);
  const bool may_submit = !absl::IsPermissionDenied(submit);
  if (read.ok() && may_submit) {
    findings->push_back(Good("caller", "accepted; may submit jobs and read the status"));
  } else if (read.ok()) {
    findings->push_back(Doubtful("caller", absl::StrCat("may read the status alone: ", submit.message()),
                                 "to run jobs, have the role submit added in the server's --identities"));
  } else if (may_submit) {
    findings->push_back(
        Doubtful("caller", absl::StrCat("may submit jobs: ", read.message()),
                 "to see engine, limits and queue here, have the role read added in the server's "
                 "--identities"));
  } else {
    findings->push_back(Bad("caller", read, "have roles added in the server's --identities"));
  }
  return true;
}

Finding CheckHealth(const absl::Status& serving, const TimedCapabilities& answer) {
  if (answer.capabilities.ok() && answer.capabilities->draining()) {
    return Bad("health",
               absl::UnavailableError("the server drains: it finishes its jobs and takes no others"),
               "use another server, or try again when it was started again");
  }
  if (!serving.ok()) {
    return Bad(
        "health", serving,
        "the server still loads its PSFs, drains, or its engine has failed: its page at --http and its log "
        "tell");
  }
  if (!answer.capabilities.ok()) return Good("health", "serving");
  return Good("health", absl::StrFormat("serving, up %.0f s", answer.capabilities->uptime_seconds()));
}

void CheckAnswer(const TimedCapabilities& answer, FindingList* findings) {
  const v1::Capabilities& status = *answer.capabilities;
  findings->push_back(CheckVersion(status.version()));
  for (const v1::EngineStatus& engine : status.engines()) findings->push_back(CheckEngine(engine));
  findings->push_back(CheckQueue(status));
  findings->push_back(CheckRoots(status));
  findings->push_back(CheckClock(answer));
}

void CheckPaths(client::Connection* connection, const TimedCapabilities& answer,
                const std::vector<std::string>& paths, std::chrono::milliseconds limit,
                FindingList* findings) {
  if (answer.capabilities.ok() && answer.capabilities->draining()) return;
  for (const std::string& path : paths)
    findings->push_back(CheckPath(connection, path, Clock::now() + limit));
}

}  // namespace spexd::cli
