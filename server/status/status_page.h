// The status page for operators: one HTML document without scripts or external assets, which the browser
// reloads by itself.
#ifndef SPEXD_SERVER_STATUS_STATUS_PAGE_H_
#define SPEXD_SERVER_STATUS_STATUS_PAGE_H_

#include <cstdint>
#include <map>
#include <string>

#include "cuda/loader/device_usage.h"
#include "server/status/job_board.h"
#include "spexd/v1/extraction.pb.h"

namespace spexd {

struct StatusPageContent {
  v1::Capabilities status = {};
  std::string address = {};               // of the gRPC port
  std::string not_ready = {};             // why the server is not ready; "": it is
  std::map<int, DeviceUsage> usage = {};  // by device number; empty if the driver reports none
  JobBoard::View jobs = {};
  int64_t detached_queued = 0, detached_running = 0;  // numbers of detached jobs
  double now = 0;                                     // seconds since 1970
};

std::string StatusPage(const StatusPageContent& content);

}  // namespace spexd

#endif  // SPEXD_SERVER_STATUS_STATUS_PAGE_H_
