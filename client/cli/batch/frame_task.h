// The frames of a batch: what is to be done with each, and where they come from.
#ifndef SPEXD_CLIENT_CLI_BATCH_FRAME_TASK_H_
#define SPEXD_CLIENT_CLI_BATCH_FRAME_TASK_H_

#include <chrono>
#include <cstddef>
#include <optional>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "client/cli/flags/product_paths.h"
#include "client/cli/terminal/frame_output.h"
#include "client/job.h"
#include "core/base/threads/mutex.h"

namespace spexd::cli {

// What files are ("frame", "model", "sky", ..), with their paths. The first names all of them in a record.
using NamedFiles = std::vector<std::pair<std::string, std::string>>;

struct FrameTask {
  client::Job job;
  FrameOutput output;         // its frame and model
  ProductPaths products;      // of the frame
  std::string expid = {};     // label of the frame in a list, or ""
  absl::Status refused = {};  // why it cannot be extracted, if it cannot

  // The files that are to be written.
  NamedFiles Files() const {
    NamedFiles files = {{"frame", output.frame}};
    if (!output.model.empty()) files.emplace_back("model", output.model);
    for (const auto& product : products.Named()) files.push_back(product);
    return files;
  }
};

// A frame of a batch, numbered from 0 in the order of the frames. One that comes again has the same number.
struct NumberedFrame {
  size_t number = 0;
  FrameTask task;
};

// Safe to use from many threads.
class FrameSource {
 public:
  virtual ~FrameSource() = default;
  // The next frame; nullopt if there are no more. May wait for one, until a stop is requested.
  virtual std::optional<NumberedFrame> Next(const std::stop_token& stop) = 0;
  // Gives a frame out again: another process was at it.
  virtual void Later(NumberedFrame frame) = 0;
  // A frame that Next gave out has ended. `may_pass`: it failed, but may succeed at another time. Returns
  // after which time it then comes again, if it does.
  virtual std::optional<std::chrono::seconds> Ended(const NumberedFrame& frame, bool may_pass) {
    return std::nullopt;
  }
  // The frames that nobody has, once no more are taken.
  virtual std::vector<NumberedFrame> Rest() = 0;
  // The number of frames; nullopt: they come until a stop is requested.
  virtual std::optional<size_t> Count() const = 0;
  // The PSF of each frame that comes; without a count, the PSFs of all of them.
  virtual std::vector<std::string> Psfs() const = 0;
};

// Frames that are all known before. Those that are to come later come after the others, with a pause before
// all of them come.
class ListedFrames : public FrameSource {
 public:
  explicit ListedFrames(std::vector<FrameTask> tasks) : tasks_(std::move(tasks)) {}

  std::optional<NumberedFrame> Next(const std::stop_token& stop) override;
  void Later(NumberedFrame frame) override;
  std::vector<NumberedFrame> Rest() override;
  std::optional<size_t> Count() const override { return tasks_.size(); }
  std::vector<std::string> Psfs() const override;

 private:
  NumberedFrame TakeLater() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const std::vector<FrameTask> tasks_;
  Mutex mutex_;
  size_t next_ ABSL_GUARDED_BY(mutex_) = 0;
  size_t before_pause_ ABSL_GUARDED_BY(mutex_) = 0;  // so many of those that come later come at once
  std::vector<NumberedFrame> later_ ABSL_GUARDED_BY(mutex_);
};

// How long a result that another process is at is left alone: its end has no notification.
inline constexpr std::chrono::milliseconds kLookAgain(200);

// Waits until then, or for a stop.
void Pause(std::chrono::milliseconds time, const std::stop_token& stop);

}  // namespace spexd::cli

#endif  // SPEXD_CLIENT_CLI_BATCH_FRAME_TASK_H_
