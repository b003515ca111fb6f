// The frame of a detached job that ended well, read from its results.
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

// The inputs of Analyse that are detached jobs. All functions except the accessors may wait for the disk.
class JobFrame {
 public:
  // Reads the frame's information from the job's first events. `store` must outlive this object. NotFound,
  // with a concealed denial as in JobStore::Get: the caller has no such job. FailedPrecondition: the job has
  // not ended, failed, or has acknowledged events. DataLoss: the results are damaged. Unavailable: the disk
  // cannot be read.
  static absl::StatusOr<JobFrame> Open(JobStore* store, const Identity& caller, const std::string& id);

  const std::string& image() const { return image_; }  // the name of the frame's image
  int fibres() const { return fibres_; }
  int bins() const { return bins_; }
  // The bytes of the frame's header and fibermap on disk.
  int64_t table_bytes() const { return info_bytes_; }
  // An upper estimate of the memory of Read: its result and what it needs meanwhile.
  int64_t bytes() const;

  // Reads the frame, sky-subtracted if the job made the sky (SkySubtracted). Errors as in Open, and
  // FailedPrecondition: the results were removed meanwhile; Cancelled: a stop was requested. Throws
  // std::bad_alloc.
  absl::StatusOr<Frame> Read(const std::stop_token& stop) const;

 private:
  JobFrame(JobStore* store, std::string id, uint64_t last_sequence)
      : store_(store), id_(std::move(id)), last_sequence_(last_sequence) {}

  EventLogReader Reader() const { return {store_->folder().EventsPath(id_), id_, 0}; }
  absl::StatusOr<v1::ExtractEvent> ReadEvent(EventLogReader* reader) const;
  absl::Status ReadInfo();
  // The beginning of messages about damage.
  std::string Damaged() const;

  JobStore* store_;
  std::string id_;
  uint64_t last_sequence_;
  std::string image_;
  int fibres_ = 0, bins_ = 0;
  int64_t info_bytes_ = 0;  // size of the FrameInfo messages
};

}  // namespace spexd

#endif  // SPEXD_SERVER_DETACHED_JOB_FRAME_H_
