// The threads for products, which all jobs share.
#ifndef SPEXD_SERVER_JOBS_PRODUCT_THREADS_H_
#define SPEXD_SERVER_JOBS_PRODUCT_THREADS_H_

#include <functional>
#include <stop_token>

#include "absl/status/status.h"
#include "server/jobs/server_parts.h"

namespace spexd {

// Returns the most threads that the products of one job may use.
int MaxProductThreads(const ServerParts& parts);

// Waits for threads and runs `work` on one of them, with their number. The threads have a lower priority than
// those of extractions. Returns the status of `work`; Cancelled: a stop was requested while waiting.
absl::Status MakeWithProductThreads(const ServerParts& parts, const std::stop_token& stop,
                                    const std::function<absl::Status(int threads)>& work);

}  // namespace spexd

#endif  // SPEXD_SERVER_JOBS_PRODUCT_THREADS_H_
