// Many frames by one command: a number of them at once, their products, and one summary of all.
#ifndef SPEXD_CLIENT_CLI_BATCH_FRAME_BATCH_H_
#define SPEXD_CLIENT_CLI_BATCH_FRAME_BATCH_H_

#include <chrono>
#include <functional>
#include <optional>
#include <set>
#include <stop_token>
#include <string>
#include <vector>

#include "client/cli/batch/batch_record.h"
#include "client/cli/batch/batch_result.h"
#include "client/cli/batch/frame_task.h"
#include "client/cli/flags/batch_products.h"
#include "client/cli/joint/unit_work.h"
#include "client/cli/products/camera_fiberflats.h"
#include "client/cli/products/product_tools.h"
#include "client/cli/terminal/progress.h"
#include "client/job.h"

namespace spexd::cli {

struct BatchOptions {
  int in_flight = 1;
  ProgressStyle style = ProgressStyle::kLines;
  bool quiet = false, verbose = false;
  std::chrono::steady_clock::time_point start;  // when the command began
  std::optional<double> max_chi2pix = {};       // of --max-chi2pix
  BatchProducts products = {};
  std::set<std::string> cameras = {};  // of the exposures of a source without end (Exposures)
  BatchRecord* record = nullptr;       // none: everything is to be done
  // Called with each result as soon as it is there, from one thread at a time; may be empty.
  std::function<void(const BatchResult&)> on_result = {};
};

// Who works on a batch. Used from many threads.
struct BatchWorkers {
  client::Extractor* extractor = nullptr;
  const ProductTools* tools = nullptr;  // makes the products of frames; null: servers do
  const NamedFiberflats* fiberflats = nullptr;
  UnitWork* exposures = nullptr;  // makes those of exposures; null: none are asked for
  bool keep_on_device = false;    // spectra, for the products
  int threads = 1;                // that write a frame
  // Called for each job that the extractor will not see; may be empty.
  std::function<void(const client::Job&)> on_unused = {};
};

struct BatchEnd {
  int code = 0;
  std::vector<BatchResult> results;  // frames by their numbers, then exposures
};

// Extracts the frames, at most `in_flight` at once, makes their products, and writes each when it is
// complete; then the exposures'. A frame that fails is named on stderr and stops no other. A product that
// cannot be made of its inputs harms no other file; one that may be made at another time lets its frame fail.
// If no server takes any frame, the remaining ones are not tried. The code is the highest of all, or
// kInterrupted once a stop is requested; what is written by then stays. A source without a count ends with a
// stop, which is no interruption then, and its frames are tried whether or not a server is there.
BatchEnd RunBatch(FrameSource* source, const BatchOptions& options, const BatchWorkers& workers,
                  const std::stop_token& stop);

}  // namespace spexd::cli

#endif  // SPEXD_CLIENT_CLI_BATCH_FRAME_BATCH_H_
