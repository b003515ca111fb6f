// Parts that the services share. Owned by Server, which outlives them.
#ifndef SPEXD_SERVER_SERVER_PARTS_H_
#define SPEXD_SERVER_SERVER_PARTS_H_

#include <chrono>
#include <string>

#include "core/extract/engine.h"
#include "server/byte_budget.h"
#include "server/engine_health.h"
#include "server/job_queue.h"
#include "server/log.h"
#include "server/metrics.h"
#include "server/options.h"
#include "server/path_policy.h"
#include "server/psf_cache.h"
#include "server/shared_threads.h"
#include "server/stall_watchdog.h"

namespace spexd {

struct ServerParts {
  const ServerOptions* options = nullptr;
  Engine* engine = nullptr;
  const std::string* engine_note = nullptr;  // see ChosenEngine
  EngineHealth* health = nullptr;
  const PathPolicy* paths = nullptr;
  PsfCache* cache = nullptr;
  JobQueue* queue = nullptr;
  ByteBudget* uploads = nullptr;
  ByteBudget* results = nullptr;
  SharedThreads* readers = nullptr;  // threads that decode files
  StallWatchdog* watchdog = nullptr;
  Metrics* metrics = nullptr;
  Logger* log = nullptr;
  std::chrono::steady_clock::time_point started;
};

}  // namespace spexd

#endif  // SPEXD_SERVER_SERVER_PARTS_H_
