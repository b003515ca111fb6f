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

// What a record has under `key`: any value, or null; a number, or 0; a text, or "". A record may come of any
// process, so nothing is taken for granted of it.
const nlohmann::json& ValueIn(const nlohmann::json& record, const std::string& key);
double NumberIn(const nlohmann::json& record, const std::string& key);
std::string TextIn(const nlohmann::json& record, const std::string& key);
// Whether the record tells why a product could not be made.
bool HasError(const nlohmann::json& record, const std::string& product);
// How many products could not be made.
int CountErrors(const nlohmann::json& record);
// Whether the record tells of bundles that failed, or of products that could not be made.
bool HasFailures(const nlohmann::json& record);

// What a frame's record tells beside checksums: docs/nights.md has a table of it. `written`: the time at
// which it was, in seconds since 1970.
nlohmann::json MeasureFrame(const JobOutcome& outcome, const std::vector<ProductResult>& products,
                            double written);

}  // namespace spexd::cli

#endif  // SPEXD_CLIENT_CLI_BATCH_BATCH_RESULT_H_
