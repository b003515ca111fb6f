#include "server/jobs/product_threads.h"

#include <sys/resource.h>

#include <algorithm>
#include <cstdint>
#include <thread>

#include "core/base/status_macros.h"
#include "core/base/threads/guard.h"

namespace spexd {
namespace {

// The most threads of one job. More gain little, because one thread computes parts of the sky.
constexpr int kMaxThreads = 16;
// The threads of a job whose products a device makes, for the rest of the work. Few, so that many jobs work
// at once: while one uses the device, others prepare spectra or convert results.
constexpr int kThreadsBesideDevice = 2;

void YieldToOthers() {
  constexpr int kNice = 10;
  setpriority(PRIO_PROCESS, 0, kNice);  // applies to the calling thread and to threads that it starts
}

}  // namespace

int MaxProductThreads(const ServerParts& parts) {
  const int most = parts.analyser != nullptr ? kThreadsBesideDevice : kMaxThreads;
  return static_cast<int>(std::min<int64_t>(most, parts.product_threads->limit()));
}

absl::Status MakeWithProductThreads(const ServerParts& parts, const std::stop_token& stop,
                                    const std::function<absl::Status(int threads)>& work) {
  const int threads = MaxProductThreads(parts);
  SPEXD_ASSIGN_OR_RETURN(const ByteBudget::Reservation reserved,
                         parts.product_threads->WaitFor(threads, stop));
  absl::Status made;
  const absl::Status started = CatchExceptions([&] {
    // The work gets a thread of its own, because a lowered priority cannot be raised again.
    const std::jthread worker([&] {
      YieldToOthers();
      made = CatchExceptions([&] { return work(threads); });
    });
    return absl::OkStatus();
  });
  if (stop.stop_requested()) return absl::CancelledError("the job was cancelled");
  made.Update(started);
  return made;
}

}  // namespace spexd
