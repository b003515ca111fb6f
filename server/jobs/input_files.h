// The files of one job: their memory, all of it reserved at once, and the threads that read them.
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

// Files are measured, then all are reserved, then they are opened and read.
class InputFiles {
 public:
  // The parts and the ticket of the bounds outlive it.
  InputFiles(const ServerParts& parts, const JobBounds& bounds)
      : parts_(parts), ticket_(bounds.ticket), stop_(bounds.stop) {}

  // Waits for memory of any budget; meanwhile another job may use this one's slot.
  absl::StatusOr<ByteBudget::Reservation> WaitFor(ByteBudget* budget, int64_t bytes) const {
    const SlotPause pause(ticket_);
    return budget->WaitFor(bytes, stop_);
  }

  // Errors of FileInput::Measure.
  absl::Status Measure(FileInput* file, int64_t max_bytes) {
    SPEXD_ASSIGN_OR_RETURN(const int64_t bytes, file->Measure(*parts_.paths, max_bytes));
    Add(bytes);
    return absl::OkStatus();
  }
  // Counts bytes that are read beside the files.
  void Add(int64_t bytes) { bytes_ += bytes; }
  // Waits for the memory of all of them, as a job that held some of the budget and waited for more could wait
  // for another such job. Then takes threads.
  absl::Status Reserve() {
    SPEXD_ASSIGN_OR_RETURN(ByteBudget::Reservation reserved, WaitFor(parts_.files, bytes_));
    memory_ = std::make_shared<ReadingMemory>(std::move(reserved), bytes_);
    readers_.emplace(parts_.readers);
    return absl::OkStatus();
  }

  // The rest REQUIRES: Reserve.
  absl::StatusOr<Source> Open(FileInput* file) { return file->Open(memory_, workers()); }
  Workers workers() const { return {readers_->threads(), stop_}; }
  ReadingMemory* memory() { return memory_.get(); }

  // Nothing more is read but what takes memory that is allowed afterwards. Also before Reserve.
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
  std::optional<SharedThreads::Share> readers_;  // while it reads
};

}  // namespace spexd

#endif  // SPEXD_SERVER_JOBS_INPUT_FILES_H_
