// The threads that make products, which all jobs share.
#ifndef SPEXD_SERVER_JOBS_PRODUCT_THREADS_H_
#define SPEXD_SERVER_JOBS_PRODUCT_THREADS_H_

#include <functional>
#include <stop_token>

#include "absl/status/status.h"
#include "server/jobs/server_parts.h"

namespace spexd {

// Threads that the products of one job take at most.
int MaxProductThreads(const ServerParts& parts);

// Waits for threads, and runs `work` with their number on one of them; they give way to extractions, because
// somebody waits for their bundles. Returns its status; Cancelled once a stop is requested.
absl::Status MakeWithProductThreads(const ServerParts& parts, const std::stop_token& stop,
                                    const std::function<absl::Status(int threads)>& work);

}  // namespace spexd

#endif  // SPEXD_SERVER_JOBS_PRODUCT_THREADS_H_
