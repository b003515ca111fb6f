// A job's claim on the queue, as far as it is known before its inputs are read.
#ifndef SPEXD_SERVER_SCHEDULE_JOB_CLAIM_H_
#define SPEXD_SERVER_SCHEDULE_JOB_CLAIM_H_

#include <chrono>
#include <cstdint>
#include <string>

#include "core/base/priority.h"
#include "server/security/identity.h"

namespace spexd {

struct JobClaim {
  std::string identity;
  Shares shares = {};  // of the identity
  std::string reader;  // of its results (see Schedule::Hold)
  int priority = 0;
  int64_t bytes = 0;          // of the inputs that it uploads
  std::string psf;            // name of its PSF and grid; "": not known
  std::string kind;           // jobs of one kind take about the same time
  std::string products = "";  // the products that follow the extraction; "": none
  std::chrono::steady_clock::time_point deadline = std::chrono::steady_clock::time_point::max();
};

}  // namespace spexd

#endif  // SPEXD_SERVER_SCHEDULE_JOB_CLAIM_H_
