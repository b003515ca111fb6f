// The event log: a job's results on disk, written by its run and read for its watchers. event_log_format.h
// has the format.
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

// The content of an event log. It has only whole groups of events. A group is all pieces of the frame's
// information, a bundle with its model, all parts of a product, or all pieces of the summary.
struct EventLogContent {
  uint64_t last_sequence = 0;  // 0: none
  int64_t bytes = 0;           // bytes of the file up to the end of the last group
  std::string frame_info;      // FrameInfoDigest; "": none
  std::set<uint32_t> bundles;
  std::set<int> products;  // v1::Product
  bool has_summary = false;
};

// Writes an event log. No client may see an event before Commit has returned OK, because a loss of power may
// erase it until then. Not safe to use from many threads at once.
class EventLogWriter {
 public:
  // Opens or creates the job's event log and cuts it after its last whole group. `shown`: the sequence number
  // of the last event that anyone may have seen. DataLoss: an event up to this one is missing or damaged; the
  // file is not changed. Unavailable: the disk cannot be read or written.
  static absl::StatusOr<EventLogWriter> Open(std::string path, std::string job_id, uint64_t shown);

  // Appends the events of one group. After an error, nothing more may be written.
  absl::Status Append(const std::vector<v1::ExtractEvent>& group);
  // Removes the groups that are not committed from the file.
  void DropUncommitted();
  // Makes the appended groups durable.
  absl::Status Commit();

  // The committed content.
  const EventLogContent& content() const { return content_; }
  int64_t bytes() const { return appended_.bytes; }  // size of the file, with groups not yet committed

 private:
  EventLogWriter(std::string path, FileDescriptor file) : path_(std::move(path)), file_(std::move(file)) {}
  // Reads the content up to the last whole group.
  absl::Status Scan(const std::string& job_id);
  absl::Status Cut();

  std::string path_;
  FileDescriptor file_;
  EventLogContent content_, appended_;
};

// Reads the records of an event log one after the other. The file is open only during calls, so that
// thousands of watchers hold no descriptors. Not safe to use from many threads at once.
class EventLogReader {
 public:
  // `after`: the sequence number before the first record to read.
  EventLogReader(std::string path, std::string job_id, uint64_t after)
      : path_(std::move(path)), job_id_(std::move(job_id)), skip_until_(after) {}

  // The sequence number of the next record.
  uint64_t next() const { return std::max(skip_until_, sequence_) + 1; }
  // Returns the size of the next record's payload in bytes. REQUIRES: the record was committed. DataLoss
  // names the file: the record is missing or damaged.
  absl::StatusOr<int64_t> NextBytes();
  // Reads the next record. Requirements and errors as in NextBytes.
  absl::StatusOr<v1::ExtractEvent> Read();

 private:
  absl::StatusOr<FileDescriptor> Open() const;
  absl::StatusOr<RecordHead> FindNext(const FileDescriptor& file);

  std::string path_;
  std::string job_id_;
  uint64_t skip_until_;
  uint64_t sequence_ = 0;                  // of the last record that was read or skipped
  int64_t offset_ = kEventLogHeaderBytes;  // its end in the file
  bool checked_ = false;                   // the file's header was checked
};

// Whether the event is the last one of its group.
bool EndsGroup(const v1::ExtractEvent& event);

// Returns a digest of the frame's information without the version of spexd. All runs of a job must have the
// same digest.
std::string FrameInfoDigest(const std::vector<v1::ExtractEvent>& group);

}  // namespace spexd

#endif  // SPEXD_SERVER_DETACHED_STORE_EVENT_LOG_H_
