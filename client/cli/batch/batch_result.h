// What became of each frame and exposure of a batch, as its record and its reports have it.
#ifndef SPEXD_CLIENT_CLI_BATCH_BATCH_RESULT_H_
#define SPEXD_CLIENT_CLI_BATCH_BATCH_RESULT_H_

#include <cstddef>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "client/cli/products/product_results.h"
#include "proto/assembler/job_outcome.h"

namespace spexd::cli {

struct BatchResult {
  enum class State { kNotReached, kWritten, kSkipped, kFailed };
  State state = State::kNotReached;
  size_t number = 0;                    // of the frame; of an exposure, its own
  std::string image = {}, output = {};  // image "": an exposure
  std::string expid = {};               // the list's label
  nlohmann::json record = {};           // of one that was written or skipped
  std::string error = {};
  int code = 0;  // what it makes of the exit code
};

// A number in a record, or 0. A record may come of any process, so nothing is taken for granted of it.
double NumberIn(const nlohmann::json& record, const char* key);
// Whether the record tells of bundles that failed, or of products that could not be made.
bool HasFailures(const nlohmann::json& record);

// What a frame's record tells beside checksums: docs/nights.md has a table of it. `written`: the time at
// which it was, in seconds since 1970.
nlohmann::json MeasureFrame(const JobOutcome& outcome, const std::vector<ProductResult>& products,
                            double written);

}  // namespace spexd::cli

#endif  // SPEXD_CLIENT_CLI_BATCH_BATCH_RESULT_H_
