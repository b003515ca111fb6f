// A job's results on disk: written by its run, read by the clients that watch it. See event_log_format.h.
#ifndef SPEXD_SERVER_DETACHED_STORE_EVENT_LOG_H_
#define SPEXD_SERVER_DETACHED_STORE_EVENT_LOG_H_

#include <algorithm>
#include <cstdint>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "core/base/file_descriptor.h"
#include "server/detached/store/event_log_format.h"

namespace spexd {

// What an event log holds. Events come in groups that are whole or not there: all pieces of the frame's
// information, a bundle with its model, all parts of a product, all pieces of the summary.
struct EventLogContent {
  uint64_t last_sequence = 0;  // 0: none
  int64_t bytes = 0;           // of the file, up to the last group's end
  std::string frame_info;      // FrameInfoDigest; "": none
  std::set<uint32_t> bundles;
  std::set<int> products;  // v1::Product
  bool has_summary = false;
};

// Writes an event log. Clients may not see an event before Commit returned OK: until then a loss of power may
// erase it. Not safe to use from many threads.
class EventLogWriter {
 public:
  // Opens the job's event log, or makes it, and cuts it behind its last whole group. `shown`: sequence number
  // of the last event that anyone may have seen. DataLoss: an event up to that one is missing or damaged; the
  // file stays as it is. Unavailable: the disk cannot be read or written.
  static absl::StatusOr<EventLogWriter> Open(std::string path, std::string job_id, uint64_t shown);

  // Adds the events of one group. After an error nothing more can be written.
  absl::Status Append(const std::vector<v1::ExtractEvent>& group);
  // Removes from the disk what was appended and not committed.
  void DropUncommitted();
  // Makes what was appended last.
  absl::Status Commit();

  // What Commit, or Open, made last.
  const EventLogContent& content() const { return content_; }
  int64_t bytes() const { return appended_.bytes; }  // of the file, with what was appended

 private:
  EventLogWriter(std::string path, FileDescriptor file) : path_(std::move(path)), file_(std::move(file)) {}
  // What can be read up to the last whole group.
  absl::Status Scan(const std::string& job_id);
  absl::Status Cut();

  std::string path_;
  FileDescriptor file_;
  EventLogContent content_, appended_;
};

// Reads one record after the other, with a file that is open only during calls: thousands who watch hold no
// descriptors. Not safe to use from many threads.
class EventLogReader {
 public:
  // The first record read will be `after` + 1.
  EventLogReader(std::string path, std::string job_id, uint64_t after)
      : path_(std::move(path)), job_id_(std::move(job_id)), skip_until_(after) {}

  uint64_t next() const { return std::max(skip_until_, sequence_) + 1; }  // of the next record
  // Bytes of the next record's payload. REQUIRES: it was shown (see EventLogWriter). DataLoss
  // names the file: it is missing or damaged.
  absl::StatusOr<int64_t> NextBytes();
  absl::StatusOr<v1::ExtractEvent> Read();

 private:
  absl::StatusOr<FileDescriptor> Open() const;
  absl::StatusOr<RecordHead> FindNext(const FileDescriptor& file);

  std::string path_;
  std::string job_id_;
  uint64_t skip_until_;
  uint64_t sequence_ = 0;                  // of the last record that was passed
  int64_t offset_ = kEventLogHeaderBytes;  // behind it
  bool checked_ = false;                   // the header
};

// Whether an event is the last of its group.
bool EndsGroup(const v1::ExtractEvent& event);

// Names what a frame's information says, but for the version of spexd that says so: a second run of a job
// must say the same.
std::string FrameInfoDigest(const std::vector<v1::ExtractEvent>& group);

}  // namespace spexd

#endif  // SPEXD_SERVER_DETACHED_STORE_EVENT_LOG_H_
