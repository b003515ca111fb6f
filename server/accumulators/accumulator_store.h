// The accumulators of a server: a folder with a file for each. Nothing of them stays in memory but what is
// listed: to add a frame reads the file and writes a new one, which then takes the old one's place.
#ifndef SPEXD_SERVER_ACCUMULATORS_ACCUMULATOR_STORE_H_
#define SPEXD_SERVER_ACCUMULATORS_ACCUMULATOR_STORE_H_

#include <cstdint>
#include <map>
#include <memory>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/base/file_descriptor.h"
#include "core/base/threads/mutex.h"
#include "server/accumulators/accumulator.h"
#include "server/admission/byte_budget.h"
#include "server/base/log.h"
#include "server/operation/store_stats.h"
#include "server/security/identity.h"

namespace spexd {

// An accumulator as lists show it.
struct AccumulatorInfo {
  AccumulatorSpec spec;
  double changed = 0;
  int64_t frames = 0;
  double rows = 0;
  WavelengthGrid grid;
  int64_t bytes = 0;  // on disk
};

// Safe to use from many threads. Errors about one that is not there, or is another identity's, are NotFound.
// What the disk refuses is Unavailable and names the file.
class AccumulatorStore {
 public:
  struct Limits {
    int64_t count = 0, count_of_owner = 0;  // 0 of count: none are kept
    int64_t bytes = 0;                      // of one, in memory and on disk
    int64_t disk_bytes = 0, disk_bytes_of_owner = 0;
  };
  // `folder`: of the jobs, "": none are kept. `log` is not owned.
  AccumulatorStore(std::string folder, const Limits& limits, Logger* log);

  // Makes the folder if need be, takes it for this process, and looks at all files: damaged ones are set
  // aside. Unavailable: another server has it, or the disk cannot be read. Call it once, before the others.
  absl::Status Open();
  bool enabled() const { return limits_.count > 0 && !folder_.empty(); }
  absl::Status CheckEnabled() const;  // FailedPrecondition: this server keeps none

  // AlreadyExists; InvalidArgument for its name; ResourceExhausted: there are too many.
  absl::StatusOr<AccumulatorInfo> Create(AccumulatorSpec spec);
  // All accumulators of an owner, in the order of owners and names. "": of all owners.
  std::vector<AccumulatorInfo> List(const std::string& owner) const;
  // `owner`: "" for the caller's own; only administrators find those of others. From anyone else the error
  // conceals that the caller was denied them, see Conceal.
  absl::StatusOr<AccumulatorInfo> Find(const Identity& caller, const std::string& owner,
                                       const std::string& name) const;

  // The most memory that Add takes, of any of some that an owner has.
  int64_t MemoryToAdd(const std::string& owner, const std::vector<std::string>& names, int64_t fibres,
                      int64_t bins) const;
  // Returns whether it had the frame before, and is as it was. Errors of Accumulator::Add;
  // ResourceExhausted: it would be too large. Cancelled while it waits for others that add to the same.
  absl::StatusOr<bool> Add(const std::string& owner, const std::string& name, const FrameToAdd& frame,
                           const std::stop_token& stop);
  // DataLoss: its file was damaged, and set aside.
  absl::StatusOr<Accumulator> Read(const AccumulatorSpec& spec);
  absl::Status Drop(const AccumulatorSpec& spec);

  AccumulatorStats stats() const;

 private:
  using Key = std::pair<std::string, std::string>;  // owner, name
  struct Entry {
    explicit Entry(AccumulatorInfo about) : info(std::move(about)) {}
    AccumulatorInfo info;
    bool gone = false;
    ByteBudget turn{"the turn of an accumulator", 1};  // of who changes its file
  };

  std::string PathOf(const Key& key) const;
  absl::Status TakeFolder();
  absl::Status TakeFile(const std::string& path) ABSL_LOCKS_EXCLUDED(mutex_);
  absl::StatusOr<std::shared_ptr<Entry>> Get(const Key& key) const ABSL_LOCKS_EXCLUDED(mutex_);
  static absl::StatusOr<Accumulator> Load(const std::string& path);
  // The same; one that is damaged is no more.
  absl::StatusOr<Accumulator> LoadOrSetAside(const Key& key, Entry* entry) ABSL_LOCKS_EXCLUDED(mutex_);
  absl::StatusOr<int64_t> Save(const Accumulator& accumulator) const;
  void SetAside(const std::string& path, const absl::Status& why) ABSL_LOCKS_EXCLUDED(mutex_);
  absl::StatusOr<bool> AddInTurn(const Key& key, Entry* entry, const FrameToAdd& frame)
      ABSL_LOCKS_EXCLUDED(mutex_);
  // ResourceExhausted unless an owner's one may have `bytes` on disk instead of `before`.
  absl::Status CheckDisk(const std::string& owner, int64_t bytes, int64_t before) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const std::string jobs_folder_, folder_;
  const Limits limits_;
  Logger* const log_;
  FileDescriptor lock_{-1};
  mutable Mutex mutex_;
  std::map<Key, std::shared_ptr<Entry>> entries_ ABSL_GUARDED_BY(mutex_);  // and what they tell
  AccumulatorStats counts_ ABSL_GUARDED_BY(mutex_);                        // of what happened
};

}  // namespace spexd

#endif  // SPEXD_SERVER_ACCUMULATORS_ACCUMULATOR_STORE_H_
