// The index in memory of all jobs, in the orders in which the store needs them.
#ifndef SPEXD_SERVER_DETACHED_STORE_JOB_INDEX_H_
#define SPEXD_SERVER_DETACHED_STORE_JOB_INDEX_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <set>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "server/detached/store/stored_job.h"

namespace spexd {

// Jobs without their headers. Not safe to use from many threads at once.
class JobIndex {
 public:
  struct Filter {
    std::vector<v1::DetachedState> states;  // none: any
    std::string owner;                      // "": any
    double submitted_after = 0;
    int64_t before = std::numeric_limits<int64_t>::max();  // jobs with smaller numbers
  };

  // Adds a job without its header, or replaces the job of the same id.
  void Put(StoredJob job);
  void Erase(const std::string& id);

  // These return null if there is no such job.
  const StoredJob* Find(const std::string& id) const;
  const StoredJob* FindRequest(const std::string& owner, const std::string& request_id) const;
  // Returns at most `max` jobs, newest first.
  std::vector<StoredJob> List(const Filter& filter, int max) const;
  size_t size() const { return jobs_.size(); }
  int64_t last_number() const { return by_number_.empty() ? 0 : by_number_.rbegin()->first.first; }

  // Returns the ids of at most `max` jobs that expire until `when`, the earliest first.
  std::vector<std::string> ExpiringUntil(double when, size_t max) const {
    return Until(expiries_, when, max);
  }
  // Returns the ids of at most `max` jobs that have not ended and whose deadlines pass until `when`, the
  // earliest first.
  std::vector<std::string> LateAt(double when, size_t max) const { return Until(deadlines_, when, max); }
  // The earliest times; infinite: there is none.
  double next_expiry() const { return First(expiries_); }
  double next_deadline() const { return First(deadlines_); }

  std::array<int64_t, v1::DetachedState_ARRAYSIZE> counts() const { return counts_; }

 private:
  using Times = std::set<std::pair<double, std::string>>;
  static std::vector<std::string> Until(const Times& times, double when, size_t max);
  static double First(const Times& times);

  std::unordered_map<std::string, StoredJob> jobs_;
  std::map<std::pair<std::string, std::string>, const StoredJob*> by_request_;
  std::map<std::pair<int64_t, std::string>, const StoredJob*> by_number_;
  Times expiries_, deadlines_;
  std::array<int64_t, v1::DetachedState_ARRAYSIZE> counts_ = {};
};

}  // namespace spexd

#endif  // SPEXD_SERVER_DETACHED_STORE_JOB_INDEX_H_
