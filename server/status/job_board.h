// The job board for the status page: current jobs, the last jobs that ended, and the spectra of the last
// hour.
#ifndef SPEXD_SERVER_STATUS_JOB_BOARD_H_
#define SPEXD_SERVER_STATUS_JOB_BOARD_H_

#include <array>
#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "core/base/threads/mutex.h"
#include "core/job/run_job.h"

namespace spexd {

// Safe to use from many threads. Its memory is that of the current jobs and of the last kEnded.
class JobBoard {
 public:
  using Clock = std::chrono::steady_clock;
  static constexpr size_t kEnded = 50;
  static constexpr int kMinutes = 60;

  // An admitted job that has not ended.
  struct UnderWay {
    std::string id = {}, image = {};  // the image's name, as the client gave it
    Clock::time_point since = {};
    std::string state = {};  // "receiving", "queued", "extracting", ...
    int bundles_done = 0, bundles_total = 0;
    bool waits() const { return state == "receiving" || state == "queued"; }  // has no slot
  };
  struct Outcome {
    absl::StatusCode code = absl::StatusCode::kOk;
    std::string message = {};               // why the job failed; cut to some hundred bytes
    double seconds = 0;                     // time since the call or the run began
    double engine_seconds = 0;              // time to prepare and extract; 0 unless the job ended well
    std::vector<StageSeconds> stages = {};  // in order
    int spectra = 0;
  };
  struct Ended {
    std::string id = {}, image = {};
    Clock::time_point at = {};
    Outcome outcome = {};
  };
  struct View {
    Clock::time_point now;
    std::vector<UnderWay> under_way;          // oldest first
    std::vector<Ended> ended;                 // latest first
    std::array<int64_t, kMinutes> spectra{};  // extracted per minute of the last hour, current last
    int64_t jobs_ok = 0, jobs_failed = 0;     // in the last hour
  };

  // A job's row on the board, from its admission to its end. The board outlives it.
  class Row {
   public:
    Row(JobBoard* board, std::string id, std::string image);
    ~Row();  // removes a job that has not ended
    Row(const Row&) = delete;
    Row& operator=(const Row&) = delete;

    void Enter(const std::string& state, int bundles_done = 0, int bundles_total = 0);
    // Moves the job to the ended ones. Call it once.
    void End(Outcome outcome);

   private:
    JobBoard* const board_;
    uint64_t number_ = 0;
  };

  explicit JobBoard(std::function<Clock::time_point()> clock = Clock::now) : clock_(std::move(clock)) {}

  void CountSpectra(int64_t spectra);
  View view() const;

 private:
  struct Minute {
    int64_t number = -1;  // minutes since the clock's epoch
    int64_t spectra = 0, jobs_ok = 0, jobs_failed = 0;
  };
  static int64_t MinuteOf(Clock::time_point time);
  Minute& ThisMinute() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const std::function<Clock::time_point()> clock_;
  mutable Mutex mutex_;
  uint64_t rows_ ABSL_GUARDED_BY(mutex_) = 0;
  std::map<uint64_t, UnderWay> under_way_ ABSL_GUARDED_BY(mutex_);
  std::deque<Ended> ended_ ABSL_GUARDED_BY(mutex_);               // latest first
  std::array<Minute, kMinutes> minutes_ ABSL_GUARDED_BY(mutex_);  // minute n is at n % kMinutes
};

}  // namespace spexd

#endif  // SPEXD_SERVER_STATUS_JOB_BOARD_H_
