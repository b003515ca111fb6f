// The results of a detached job that ended well, as a frame again.
#ifndef SPEXD_SERVER_DETACHED_JOB_FRAME_H_
#define SPEXD_SERVER_DETACHED_JOB_FRAME_H_

#include <cstdint>
#include <stop_token>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "core/model/frame.h"
#include "server/detached/store/job_store.h"
#include "server/security/identity.h"

namespace spexd {

// Everything but the accessors blocks for the disk.
class JobFrame {
 public:
  // Reads what the job's first events tell of its frame. `store` must outlive this. NotFound, concealed as
  // JobStore::Get does: the caller has no such job. FailedPrecondition: it has not ended, it failed, or some
  // of its results are acknowledged. DataLoss: they are damaged. Unavailable: the disk cannot be read.
  static absl::StatusOr<JobFrame> Open(JobStore* store, const Identity& caller, const std::string& id);

  const std::string& image() const { return image_; }  // the name of the frame's image
  int fibres() const { return fibres_; }
  int bins() const { return bins_; }
  // Its header and its fibermap, as they are on disk.
  int64_t table_bytes() const { return info_bytes_; }
  // An upper estimate of the memory that Read's result takes, and Read itself meanwhile.
  int64_t bytes() const;

  // The frame, less its sky if the job made one (SkySubtracted). Errors as Open, FailedPrecondition also
  // where the results were removed since; Cancelled once a stop is requested. Throws std::bad_alloc.
  absl::StatusOr<Frame> Read(const std::stop_token& stop) const;

 private:
  JobFrame(JobStore* store, std::string id, uint64_t last_sequence)
      : store_(store), id_(std::move(id)), last_sequence_(last_sequence) {}

  EventLogReader Reader() const { return {store_->folder().EventsPath(id_), id_, 0}; }
  absl::StatusOr<v1::ExtractEvent> ReadEvent(EventLogReader* reader) const;
  absl::Status ReadInfo();
  // How errors begin that tell of damage.
  std::string Damaged() const;

  JobStore* store_;
  std::string id_;
  uint64_t last_sequence_;
  std::string image_;
  int fibres_ = 0, bins_ = 0;
  int64_t info_bytes_ = 0;  // of the messages of the frame's information
};

}  // namespace spexd

#endif  // SPEXD_SERVER_DETACHED_JOB_FRAME_H_
