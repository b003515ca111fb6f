// What a job asks of the queue, as far as it is known before anything of it is read.
#ifndef SPEXD_SERVER_SCHEDULE_JOB_CLAIM_H_
#define SPEXD_SERVER_SCHEDULE_JOB_CLAIM_H_

#include <chrono>
#include <cstdint>
#include <string>

#include "core/base/priority.h"
#include "server/security/identity.h"

namespace spexd {

struct JobClaim {
  std::string identity;  // whose shares it takes
  Shares shares = {};
  std::string reader;    // who reads its results: see Schedule::Hold
  int priority = 0;
  int64_t bytes = 0;          // of the inputs that it brings
  std::string psf;            // its PSF and grid; "": not known
  std::string kind;           // jobs of one kind take about as long
  std::string products = "";  // which products follow the extraction; "": none
  std::chrono::steady_clock::time_point deadline = std::chrono::steady_clock::time_point::max();
};

}  // namespace spexd

#endif  // SPEXD_SERVER_SCHEDULE_JOB_CLAIM_H_
