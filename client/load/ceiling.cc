#include "client/load/ceiling.h"

#include <atomic>
#include <chrono>
#include <vector>

#include "client/bench/measure.h"
#include "client/load/threads.h"
#include "client/upload/input_file.h"
#include "core/base/seconds_since.h"
#include "core/base/status_macros.h"
#include "core/base/threads/mutex.h"
#include "core/fits/readers.h"

namespace spexd::load {
namespace {

using Stopwatch = std::chrono::steady_clock;

constexpr int kFilesOfEach = 2;

struct Decoding {
  std::vector<double> files;  // seconds of each file
  double seconds = 0;         // seconds of all files together
};

// Decodes the file repeatedly, `at_once` times in parallel, each time with `threads` threads.
absl::StatusOr<Decoding> Decode(const std::string& path, int at_once, int threads, double seconds,
                                std::stop_token stop) {
  Decoding result;
  Mutex mutex;
  std::atomic<bool> failed = false;
  const Stopwatch::time_point start = Stopwatch::now();
  const auto body = [&](int) -> absl::Status {
    for (int file = 0; !failed && (file < kFilesOfEach || SecondsSince(start) < seconds); ++file) {
      if (stop.stop_requested()) return absl::CancelledError("cancelled");
      const Stopwatch::time_point begin = Stopwatch::now();
      absl::StatusOr<Source> source = Source::FromFile(path);
      absl::Status status = source.status();
      if (status.ok()) status = ReadPreproc(*source, {threads, stop}).status();
      if (!status.ok()) {
        failed = true;
        return status;
      }
      const double passed = SecondsSince(begin);
      MutexLock lock(&mutex);
      result.files.push_back(passed);
    }
    return absl::OkStatus();
  };
  SPEXD_RETURN_IF_ERROR(RunThreads(at_once, body, [&failed] { failed = true; }));
  result.seconds = SecondsSince(start);
  return result;
}

}  // namespace

absl::StatusOr<DecodeCeiling> MeasureDecoding(const std::string& path, int threads, double seconds,
                                              std::stop_token stop) {
  DecodeCeiling ceiling;
  ceiling.image = path;
  ceiling.threads = threads;
  SPEXD_ASSIGN_OR_RETURN(const client::InputFile file, client::InputFile::Open(path));
  ceiling.file_bytes = file.bytes();
  SPEXD_ASSIGN_OR_RETURN(const Decoding one, Decode(path, 1, 1, seconds, stop));
  SPEXD_ASSIGN_OR_RETURN(const Decoding all, Decode(path, 1, threads, seconds, stop));
  SPEXD_ASSIGN_OR_RETURN(const Decoding each, Decode(path, threads, 1, seconds, stop));
  ceiling.one_thread = bench::SpreadOf(one.files).median;
  ceiling.all_threads = bench::SpreadOf(all.files).median;
  ceiling.rate = static_cast<double>(each.files.size()) / each.seconds;
  return ceiling;
}

}  // namespace spexd::load
