// The tasks of a batch, and the sources of its frames.
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

// Kinds of files ("frame", "model", "sky", ..) with their paths. The first file identifies all of them in a
// record.
using NamedFiles = std::vector<std::pair<std::string, std::string>>;

struct FrameTask {
  client::Job job;
  FrameOutput output;         // files of the frame and model
  ProductPaths products;      // files of the frame's products
  std::string expid = {};     // label of the frame in a list; "": none
  absl::Status refused = {};  // not OK: why the frame cannot be extracted

  // Returns the files to write.
  NamedFiles Files() const {
    NamedFiles files = {{"frame", output.frame}};
    if (!output.model.empty()) files.emplace_back("model", output.model);
    for (const auto& product : products.Named()) files.push_back(product);
    return files;
  }
};

// A frame of a batch, numbered from 0 in order. A frame that comes again keeps its number.
struct NumberedFrame {
  size_t number = 0;
  FrameTask task;
};

// The source of a batch's frames. Safe to use from many threads.
class FrameSource {
 public:
  virtual ~FrameSource() = default;
  // Returns the next frame; nullopt: there are no more. May wait for one, until a stop is requested.
  virtual std::optional<NumberedFrame> Next(const std::stop_token& stop) = 0;
  // Puts a frame back, because another process works on it. It comes again later.
  virtual void Later(NumberedFrame frame) = 0;
  // Reports that a frame of Next has ended. `may_pass`: it failed but may succeed at another time. Returns
  // the time after which it comes again, if it does.
  virtual std::optional<std::chrono::seconds> Ended(const NumberedFrame& frame, bool may_pass) {
    return std::nullopt;
  }
  // Returns the frames that were not taken. Call it after the last call of Next.
  virtual std::vector<NumberedFrame> Rest() = 0;
  // Returns the number of frames; nullopt: they come until a stop is requested.
  virtual std::optional<size_t> Count() const = 0;
  // Returns the PSF of each frame; without a count, all PSFs that frames may have.
  virtual std::vector<std::string> Psfs() const = 0;
};

// A list of frames that is known in advance. Frames that were put back come after the others, with a pause
// before each round of them.
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
  size_t before_pause_ ABSL_GUARDED_BY(mutex_) = 0;  // frames of later_ that come before the next pause
  std::vector<NumberedFrame> later_ ABSL_GUARDED_BY(mutex_);
};

// The time after which a result that another process has is tried again, since its end is not notified.
inline constexpr std::chrono::milliseconds kLookAgain(200);

// Waits for `time`, or until a stop is requested.
void Pause(std::chrono::milliseconds time, const std::stop_token& stop);

}  // namespace spexd::cli

#endif  // SPEXD_CLIENT_CLI_BATCH_FRAME_TASK_H_
