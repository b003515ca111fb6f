// A batch: many frames by one command, several at once, with their products and one summary.
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
  std::optional<double> max_chi2pix = {};       // --max-chi2pix
  BatchProducts products = {};
  std::set<std::string> cameras = {};  // for a source without end (see Exposures)
  BatchRecord* record = nullptr;       // null: everything must be done
  // Called with each result as soon as it is known, by one thread at a time; may be empty.
  std::function<void(const BatchResult&)> on_result = {};
};

// The workers of a batch. Many threads use them.
struct BatchWorkers {
  client::Extractor* extractor = nullptr;
  const ProductTools* tools = nullptr;  // makes the products of frames; null: servers make them
  const NamedFiberflats* fiberflats = nullptr;
  UnitWork* exposures = nullptr;  // makes the products of exposures; null: none are asked for
  bool keep_on_device = false;    // spectra stay on the device for the products
  int threads = 1;                // threads that write a frame
  // Called for each job that the extractor will not get; may be empty.
  std::function<void(const client::Job&)> on_unused = {};
};

struct BatchEnd {
  int code = 0;
  std::vector<BatchResult> results;  // frames by their numbers, then exposures
};

// Extracts the frames, at most `in_flight` at once, makes their products and writes each frame when it is
// complete. Then it makes the products of exposures. A frame that fails is named on stderr and stops no
// other. A product that cannot be made from its inputs affects no other file, but if it may succeed at
// another time, its frame fails. If no server takes any frame, the remaining ones are not tried. Returns the
// highest code of all results, or kInterrupted after a stop request; files that are written stay. A source
// without a count ends with a stop request, which is then no interruption, and its frames are tried even if
// no server is available.
BatchEnd RunBatch(FrameSource* source, const BatchOptions& options, const BatchWorkers& workers,
                  const std::stop_token& stop);

}  // namespace spexd::cli

#endif  // SPEXD_CLIENT_CLI_BATCH_FRAME_BATCH_H_
