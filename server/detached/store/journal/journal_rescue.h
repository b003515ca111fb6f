// What is left of a damaged journal.
#ifndef SPEXD_SERVER_DETACHED_STORE_JOURNAL_JOURNAL_RESCUE_H_
#define SPEXD_SERVER_DETACHED_STORE_JOURNAL_JOURNAL_RESCUE_H_

#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace spexd {

struct RescuedJournal {
  struct DamagedJob {
    int64_t number = 0;
    std::string id;  // "": not known; it may be damaged too
    std::string why;
  };
  int64_t intact = 0;  // jobs
  std::vector<DamagedJob> damaged;
};

// Writes the rows of the journal `damaged` that are as they were written to a new file `rescued`, which is on
// disk when this returns; what lies there is replaced. Rows are looked for by the table and by its index of
// ids, from both ends: a damaged page costs the jobs whose rows lie there. Where nothing is found, the first
// page, which tells where the tables lie, is taken for the damaged one and replaced in a copy.
// Unavailable: the disk cannot be read or written.
absl::StatusOr<RescuedJournal> RescueJournal(const std::string& damaged, const std::string& rescued);

// The ids of the jobs in a journal that RescueJournal wrote.
absl::StatusOr<std::set<std::string>> IdsOfRescued(const std::string& rescued);

}  // namespace spexd

#endif  // SPEXD_SERVER_DETACHED_STORE_JOURNAL_JOURNAL_RESCUE_H_
