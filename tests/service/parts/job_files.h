// Helpers for tests of detached jobs on disk.
#ifndef SPEXD_TESTS_SERVICE_PARTS_JOB_FILES_H_
#define SPEXD_TESTS_SERVICE_PARTS_JOB_FILES_H_

#include <signal.h>
#include <sys/resource.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/base/digest/crc32c.h"
#include "core/base/digest/sha256.h"
#include "server/detached/store/job_store.h"
#include "tests/support/matchers.h"
#include "tests/support/temp_folder.h"

namespace spexd::testing {

// Returns a record for a job's files, with its checksum.
inline std::string SealedRecord(const std::string& json) {
  return absl::StrCat(absl::Hex(Crc32c(json), absl::kZeroPad8), " ", json, "\n");
}

// While it exists, no file can grow beyond this size.
class FileSizeLimit {
 public:
  explicit FileSizeLimit(rlim_t bytes) : handler_(signal(SIGXFSZ, SIG_IGN)) {
    EXPECT_EQ(getrlimit(RLIMIT_FSIZE, &before_), 0);
    const rlimit limit = {bytes, before_.rlim_max};
    EXPECT_EQ(setrlimit(RLIMIT_FSIZE, &limit), 0);
  }
  ~FileSizeLimit() {
    EXPECT_EQ(setrlimit(RLIMIT_FSIZE, &before_), 0);
    signal(SIGXFSZ, handler_);
  }

 private:
  const sighandler_t handler_;
  rlimit before_{};
};

class JobStoreTest : public ::testing::Test {
 protected:
  static constexpr int64_t kHeaderBytes = 6, kInputBytes = 6;

  JobStoreTest() : log_(LogLevel::kInfo, MakeStreamSink(&lines_)) {}
  std::unique_ptr<JobStore> Open(size_t min_unlisted = 1000) {
    auto store = JobStore::Open({Folder(), {.bytes = 1 << 20}, min_unlisted}, &log_);
    EXPECT_TRUE(store.ok()) << store.status();
    return store.ok() ? *std::move(store) : nullptr;
  }
  static JobStore::Submission Submission(const std::string& request_id) {
    JobStore::Submission submission;
    submission.job.owner = "me";
    submission.job.request_id = request_id;
    submission.job.image = "preproc.fits";
    submission.job.header = "header";
    submission.job.digest = "digest of " + request_id;
    submission.job.keep_seconds = 1000;
    submission.job.inputs = {{"image", kInputBytes, Sha256Hex("pixels")}};
    submission.inputs = {{"image", "pixels"}};
    return submission;
  }
  static absl::StatusOr<JobStore::Submitted> Add(JobStore* store, const JobStore::Submission& submission) {
    auto disk = DiskHold::Take(&store->space(), "me", JobStore::BytesOf("header", kInputBytes));
    EXPECT_TRUE(disk.ok()) << disk.status();
    return store->Add(submission, &*disk);
  }
  static std::string Add(JobStore* store, const std::string& request_id) {
    const auto submitted = Add(store, Submission(request_id));
    EXPECT_TRUE(submitted.ok()) << submitted.status();
    return submitted->job.id;
  }
  // Adds a job, using a store opened only for this.
  std::string AddAndClose(const std::string& request_id) { return Add(Open().get(), request_id); }
  // Records a run that wrote `last` events, all of which were shown.
  static void Show(JobStore* store, const std::string& id, uint64_t last) {
    EventLogContent content;
    content.last_sequence = last;
    content.bytes = 400;
    content.bundles = {0, 1};
    EXPECT_TRUE(store->ReserveForResults(id, content.bytes).ok());
    EXPECT_TRUE(store->Show(id, content, 5).ok());
  }
  // Adds a job that ended with three events and that nothing uses.
  std::string AddEnded(JobStore* store, const std::string& request_id) const {
    const std::string id = Add(store, request_id);
    Show(store, id, 3);
    WriteBytes(Path(id, "events"), "results");
    EXPECT_TRUE(store->End(id, absl::OkStatus()).ok());
    store->CleanUp(id);
    return id;
  }
  std::string Folder() const { return folder_ / "jobs"; }
  std::string Path(const std::string& id, const std::string& file) const {
    return absl::StrCat(Folder(), "/jobs/", id, "/", file);
  }
  // Returns the names in a subfolder of the jobs folder.
  std::vector<std::string> In(const std::string& folder) const {
    std::vector<std::string> names;
    std::error_code none;
    for (const auto& entry : std::filesystem::directory_iterator(Folder() + "/" + folder, none))
      names.push_back(entry.path().filename());
    std::sort(names.begin(), names.end());
    return names;
  }
  std::vector<std::string> FilesOf(const std::string& id) const { return In("jobs/" + id); }
  std::string Lines() {
    log_.Flush();
    return lines_.str();
  }

  TempFolder folder_;
  std::ostringstream lines_;
  Logger log_;
  const Identity me_{"me", {true, true, false}}, you_{"you", {true, true, false}},
      root_{"root", Roles::All()};
};

}  // namespace spexd::testing

#endif  // SPEXD_TESTS_SERVICE_PARTS_JOB_FILES_H_
