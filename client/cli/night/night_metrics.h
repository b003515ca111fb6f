// The metrics of a night for Prometheus, in a file that node_exporter's textfile collector reads.
#ifndef SPEXD_CLIENT_CLI_NIGHT_NIGHT_METRICS_H_
#define SPEXD_CLIENT_CLI_NIGHT_NIGHT_METRICS_H_

#include <array>
#include <chrono>
#include <cstddef>
#include <map>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "client/cli/batch/batch_result.h"
#include "core/base/threads/mutex.h"

namespace spexd::cli {

// The metrics of docs/nights.md, by camera. Beyond kMaxCameras, cameras share the label "other".
class NightNumbers {
 public:
  static constexpr size_t kMaxCameras = 100;
  static constexpr size_t kQuantities = 8;

  // `listed`: the number of frames in the list; 0: not known. `start`: seconds since 1970.
  NightNumbers(size_t listed, double start) : listed_(listed), start_(start) {}

  void Add(const BatchResult& result);

  // Returns the metrics in Prometheus' text format. `running`: whether more results may come.
  std::string Text(bool running) const;

 private:
  struct Camera {
    std::map<BatchResult::State, int> frames;
    int bad_fits = 0, failed_products = 0;
    double written = 0;  // when the last frame was written, seconds since 1970
    std::array<double, kQuantities> last = {};
    std::array<std::vector<double>, kQuantities> values;
  };

  const size_t listed_;
  const double start_;
  std::map<std::string, Camera> cameras_;  // by label
  std::map<BatchResult::State, int> exposures_;
};

// Keeps the file up to date. The file is always complete. Safe to use from many threads.
class NightMetricsFile {
 public:
  // `pause`: the least time between two versions of the file.
  NightMetricsFile(std::string path, size_t listed,
                   std::chrono::milliseconds pause = std::chrono::seconds(1));
  ~NightMetricsFile();  // does not write the file

  // Writes the first version and begins. Errors as in WriteFileAtomically.
  absl::Status Begin();
  void Add(const BatchResult& result) ABSL_LOCKS_EXCLUDED(mutex_);
  // Writes the last version, which says that the run has ended. Returns the first error since Begin.
  absl::Status End() ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  void Work() ABSL_LOCKS_EXCLUDED(mutex_);
  void StopThread() ABSL_LOCKS_EXCLUDED(mutex_);

  const std::string path_;
  const std::chrono::milliseconds pause_;
  Mutex mutex_;
  CondVar changed_;
  NightNumbers numbers_ ABSL_GUARDED_BY(mutex_);
  bool is_new_ ABSL_GUARDED_BY(mutex_) = false;  // there is a result that the file lacks
  bool ends_ ABSL_GUARDED_BY(mutex_) = false;
  absl::Status status_ ABSL_GUARDED_BY(mutex_);
  std::thread thread_;
};

}  // namespace spexd::cli

#endif  // SPEXD_CLIENT_CLI_NIGHT_NIGHT_METRICS_H_
