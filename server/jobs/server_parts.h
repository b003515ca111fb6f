// The parts of the server that the services share. Server owns them and outlives the services.
#ifndef SPEXD_SERVER_JOBS_SERVER_PARTS_H_
#define SPEXD_SERVER_JOBS_SERVER_PARTS_H_

#include <chrono>
#include <string>

#include "core/analysis/analyser/analyser.h"
#include "core/extract/engine.h"
#include "server/access/access.h"
#include "server/admission/byte_budget.h"
#include "server/admission/job_queue.h"
#include "server/admission/path_policy.h"
#include "server/admission/stream_limits.h"
#include "server/admission/warm_cache.h"
#include "server/base/event_thread.h"
#include "server/base/log.h"
#include "server/base/shared_threads.h"
#include "server/base/stall_watchdog.h"
#include "server/base/task_threads.h"
#include "server/config/options.h"
#include "server/operation/engine_health.h"
#include "server/operation/metrics.h"
#include "server/status/job_board.h"

namespace spexd {

struct ServerParts {
  const ServerOptions* options = nullptr;
  Engine* engine = nullptr;
  const std::string* engine_note = nullptr;  // see ChosenEngine
  Analyser* analyser = nullptr;              // a device for products; null: processors compute them
  EngineHealth* health = nullptr;
  Access* access = nullptr;
  const PathPolicy* paths = nullptr;
  WarmCache* cache = nullptr;
  JobQueue* queue = nullptr;
  ByteBudget* uploads = nullptr;
  ByteBudget* results = nullptr;
  ByteBudget* files = nullptr;            // bytes that running jobs read and inflate
  ByteBudget* decoded = nullptr;          // decoded images and PSFs
  ByteBudget* products = nullptr;         // frames, and products of them
  SharedThreads* readers = nullptr;       // threads that decode files
  ByteBudget* product_threads = nullptr;  // counts threads for products, not bytes
  StreamLimits* streams = nullptr;
  StallWatchdog* watchdog = nullptr;
  EventThread* events = nullptr;
  TaskThreads* tasks = nullptr;
  Metrics* metrics = nullptr;
  JobBoard* board = nullptr;
  Logger* log = nullptr;
  std::chrono::steady_clock::time_point started;
};

}  // namespace spexd

#endif  // SPEXD_SERVER_JOBS_SERVER_PARTS_H_
