// The ids of jobs of Extract and Analyse.
#ifndef SPEXD_SERVER_RPC_JOB_IDS_H_
#define SPEXD_SERVER_RPC_JOB_IDS_H_

#include <atomic>
#include <cstdint>
#include <random>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace spexd {

// Makes ids. Each object begins its ids with a random number, so that they differ after a restart of the
// server. Safe to use from many threads.
class JobIds {
 public:
  std::string Next() { return absl::StrCat(prefix_, "-", ++jobs_); }

 private:
  const std::string prefix_ = absl::StrFormat("%08x", std::random_device()());
  std::atomic<uint64_t> jobs_ = 0;
};

}  // namespace spexd

#endif  // SPEXD_SERVER_RPC_JOB_IDS_H_
