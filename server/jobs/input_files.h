// The files of one job: their memory, which is reserved at once, and the threads that read them.
#ifndef SPEXD_SERVER_JOBS_INPUT_FILES_H_
#define SPEXD_SERVER_JOBS_INPUT_FILES_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <stop_token>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/base/status_macros.h"
#include "server/admission/reading_memory.h"
#include "server/inputs/job_inputs.h"
#include "server/jobs/job_bounds.h"
#include "server/jobs/server_parts.h"

namespace spexd {

// Files are first measured, then their memory is reserved, then they are opened and read.
class InputFiles {
 public:
  // `parts` and the ticket of `bounds` outlive this object.
  InputFiles(const ServerParts& parts, const JobBounds& bounds)
      : parts_(parts), ticket_(bounds.ticket), stop_(bounds.stop) {}

  // Waits for memory of a budget. The time does not count as the job's device time.
  absl::StatusOr<ByteBudget::Reservation> WaitFor(ByteBudget* budget, int64_t bytes) const {
    const SlotPause pause(ticket_);
    return budget->WaitFor(bytes, stop_);
  }

  // Measures a file and adds its memory. Errors as in FileInput::Measure.
  absl::Status Measure(FileInput* file, int64_t max_bytes) {
    SPEXD_ASSIGN_OR_RETURN(const int64_t bytes, file->Measure(*parts_.paths, max_bytes));
    Add(bytes);
    return absl::OkStatus();
  }
  // Adds bytes that are read in addition to the files.
  void Add(int64_t bytes) { bytes_ += bytes; }
  // Waits for the memory of all files at once, then takes threads. If jobs held a part of the budget and
  // waited for more, they could wait for each other.
  absl::Status Reserve() {
    SPEXD_ASSIGN_OR_RETURN(ByteBudget::Reservation reserved, WaitFor(parts_.files, bytes_));
    memory_ = std::make_shared<ReadingMemory>(std::move(reserved), bytes_);
    readers_.emplace(parts_.readers);
    return absl::OkStatus();
  }

  // The functions from here to memory() REQUIRE: Reserve was OK.
  absl::StatusOr<Source> Open(FileInput* file) { return file->Open(memory_, workers()); }
  Workers workers() const { return {readers_->threads(), stop_}; }
  ReadingMemory* memory() { return memory_.get(); }

  // Releases threads and memory. Later reads take only memory that is allowed afterwards (see ReadingMemory).
  // May also be called before Reserve.
  void Release() {
    readers_.reset();
    if (memory_ != nullptr) memory_->Release();
  }

 private:
  const ServerParts parts_;
  JobQueue::Ticket* const ticket_;
  const std::stop_token stop_;
  int64_t bytes_ = 0;
  std::shared_ptr<ReadingMemory> memory_;        // sources share it
  std::optional<SharedThreads::Share> readers_;  // from Reserve to Release
};

}  // namespace spexd

#endif  // SPEXD_SERVER_JOBS_INPUT_FILES_H_
