// What a night came to so far, for Prometheus: a file that node_exporter's textfile collector reads.
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

// The numbers of docs/nights.md, by camera. Beyond kMaxCameras, cameras share the label "other".
class NightNumbers {
 public:
  static constexpr size_t kMaxCameras = 100;
  static constexpr size_t kQuantities = 8;

  // `listed`: frames of the list, 0 if they are not known beforehand. `start`: seconds since 1970.
  NightNumbers(size_t listed, double start) : listed_(listed), start_(start) {}

  void Add(const BatchResult& result);

  // Prometheus's text format. `running`: whether more results may come.
  std::string Text(bool running) const;

 private:
  struct Camera {
    std::map<BatchResult::State, int> frames;
    int bad_fits = 0, failed_products = 0;
    double written = 0;  // when the last one was
    std::array<double, kQuantities> last = {};
    std::array<std::vector<double>, kQuantities> values;
  };

  const size_t listed_;
  const double start_;
  std::map<std::string, Camera> cameras_;  // by label
  std::map<BatchResult::State, int> exposures_;
};

// Keeps the file up to date, and each time whole. Safe to use from many threads.
class NightMetricsFile {
 public:
  // `pause`: the least time between two files.
  NightMetricsFile(std::string path, size_t listed,
                   std::chrono::milliseconds pause = std::chrono::seconds(1));
  ~NightMetricsFile();  // without a last file, unless End was called

  // Writes the first file and begins. The errors of WriteFileAtomically.
  absl::Status Begin();
  void Add(const BatchResult& result) ABSL_LOCKS_EXCLUDED(mutex_);
  // Writes the last file, which says that the run has ended. The first error since Begin.
  absl::Status End() ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  void Work() ABSL_LOCKS_EXCLUDED(mutex_);
  void StopThread() ABSL_LOCKS_EXCLUDED(mutex_);

  const std::string path_;
  const std::chrono::milliseconds pause_;
  Mutex mutex_;
  CondVar changed_;
  NightNumbers numbers_ ABSL_GUARDED_BY(mutex_);
  bool is_new_ ABSL_GUARDED_BY(mutex_) = false;  // a result that the file does not have
  bool ends_ ABSL_GUARDED_BY(mutex_) = false;
  absl::Status status_ ABSL_GUARDED_BY(mutex_);
  std::thread thread_;
};

}  // namespace spexd::cli

#endif  // SPEXD_CLIENT_CLI_NIGHT_NIGHT_METRICS_H_
