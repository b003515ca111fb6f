// The journal of detached jobs: what was submitted, the state of each job, and how it ended. It survives kill
// -9 and loss of power: each change is on disk when its call returns.
#ifndef SPEXD_SERVER_DETACHED_STORE_JOURNAL_JOURNAL_H_
#define SPEXD_SERVER_DETACHED_STORE_JOURNAL_JOURNAL_H_

#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "core/base/threads/mutex.h"
#include "server/detached/store/journal/disk_reserve.h"
#include "server/detached/store/journal/job_row.h"
#include "server/detached/store/journal/sqlite.h"

namespace spexd {

// Safe to use from many threads, one call at a time. Errors: Unavailable if the disk cannot be read or
// written, DataLoss if the file is damaged; both name it.
//
// Changes and deletions succeed on a full disk too: a reserve of disk is given up for them, part by part, and
// taken again when there is room.
class Journal {
 public:
  // `path`: the file, made if it is not there, and brought to this version of spexd if it was made by an
  // older one. FailedPrecondition: it was made by a newer one. DataLoss: it is damaged, or a row has a value
  // that spexd never writes, or another one than was written, by the row's checksum.
  static absl::StatusOr<std::unique_ptr<Journal>> Open(const std::string& path);

  // Takes the reserve again, if it was given up. Unavailable: the disk has no room for it, and nothing but
  // changes should be written.
  absl::Status FillReserve() { return reserve_.Fill(); }
  bool reserve_is_whole() const { return reserve_.whole(); }

  // AlreadyExists: the owner has a job of this request_id. The row's number is the next one, whatever `row`
  // says.
  absl::Status Insert(const JobRow& row) ABSL_LOCKS_EXCLUDED(mutex_);
  absl::StatusOr<std::optional<JobRow>> Find(const std::string& id) ABSL_LOCKS_EXCLUDED(mutex_);
  absl::StatusOr<std::optional<JobRow>> FindRequest(const std::string& owner, const std::string& request_id)
      ABSL_LOCKS_EXCLUDED(mutex_);
  // Changes what `change` changes of a row, and returns the row. An error of `change` is returned, and
  // nothing changed. It may change what follows `submitted` in JobRow, and may be called more than once, each
  // time with the row as it was. NotFound: no such job.
  absl::StatusOr<JobRow> Change(const std::string& id, const std::function<absl::Status(JobRow*)>& change)
      ABSL_LOCKS_EXCLUDED(mutex_);
  absl::Status Delete(const std::string& id) ABSL_LOCKS_EXCLUDED(mutex_);

  struct Filter {
    std::vector<v1::DetachedState> states;  // none: all
    std::string owner;                      // "": all
    double submitted_after = 0;
    int64_t before = std::numeric_limits<int64_t>::max();  // jobs of smaller numbers
  };
  // Newest first, without headers.
  absl::StatusOr<std::vector<JobRow>> List(const Filter& filter, int most) ABSL_LOCKS_EXCLUDED(mutex_);
  // Jobs that expired at `now`, at most `most`.
  absl::StatusOr<std::vector<JobRow>> Expired(double now, int most) ABSL_LOCKS_EXCLUDED(mutex_);
  // When the next job expires; infinite if none does.
  absl::StatusOr<double> NextExpiry() ABSL_LOCKS_EXCLUDED(mutex_);
  // Jobs that wait or run though their deadline had passed at `now`, at most `most`.
  absl::StatusOr<std::vector<JobRow>> Late(double now, int most) ABSL_LOCKS_EXCLUDED(mutex_);
  // The next deadline of a job that waits or runs; infinite if there is none.
  absl::StatusOr<double> NextDeadline() ABSL_LOCKS_EXCLUDED(mutex_);
  // Calls `visit` for each job, without headers.
  absl::Status ForEach(const std::function<void(const JobRow&)>& visit) ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  Journal(const std::string& path, SqlDatabase database)
      : reserve_(path + "-reserve"), database_(std::move(database)) {}
  // Whether to try again what ended so: it failed for the disk, and some of the reserve was given up for it.
  bool GaveRoomAfter(const absl::Status& status) {
    return absl::IsUnavailable(status) && reserve_.GiveUpPart();
  }
  absl::Status Prepare() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status CheckRows() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Whether a job could be added; adds none.
  absl::Status TryInsert() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // The first column of the first row; infinite without one.
  absl::StatusOr<double> FirstTime(const char* sql) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::StatusOr<std::optional<JobRow>> FindOne(SqlStatement statement) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::StatusOr<std::optional<JobRow>> FindById(const std::string& id) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::StatusOr<JobRow> TryChange(const std::string& id, const std::function<absl::Status(JobRow*)>& change)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status TryDelete(const std::string& id) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  DiskReserve reserve_;
  Mutex mutex_;
  SqlDatabase database_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace spexd

#endif  // SPEXD_SERVER_DETACHED_STORE_JOURNAL_JOURNAL_H_
