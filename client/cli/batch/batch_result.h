// The results of the frames and exposures of a batch, for its record and reports.
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
  size_t number = 0;                    // of the frame, or of the exposure
  std::string image = {}, output = {};  // image "": the result is that of an exposure
  std::string expid = {};               // label in the list
  nlohmann::json record = {};           // set for kWritten and kSkipped
  std::string error = {};
  int code = 0;  // its contribution to the exit code
};

// Return the value of a record under `key`: any value, or null; a number, or 0; a string, or "". Any process
// may have written the record, so its types are not trusted.
const nlohmann::json& ValueIn(const nlohmann::json& record, const std::string& key);
double NumberIn(const nlohmann::json& record, const std::string& key);
std::string TextIn(const nlohmann::json& record, const std::string& key);
// Whether the record has an error of the product.
bool HasError(const nlohmann::json& record, const std::string& product);
// Returns the number of products that could not be made.
int CountErrors(const nlohmann::json& record);
// Whether the record has failed bundles, or products that could not be made.
bool HasFailures(const nlohmann::json& record);

// Returns the contents of a frame's record without checksums (see the table in docs/nights.md). `written`:
// when the frame was written, in seconds since 1970.
nlohmann::json MeasureFrame(const JobOutcome& outcome, const std::vector<ProductResult>& products,
                            double written);

}  // namespace spexd::cli

#endif  // SPEXD_CLIENT_CLI_BATCH_BATCH_RESULT_H_
