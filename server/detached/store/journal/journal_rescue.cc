#include "server/detached/store/journal/journal_rescue.h"

#include <fcntl.h>

#include <filesystem>
#include <map>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/base/file_descriptor.h"
#include "core/base/status_macros.h"
#include "core/base/text.h"
#include "server/base/files.h"
#include "server/detached/store/journal/journal_rows.h"

namespace spexd {
namespace {

using IdsByNumber = std::map<int64_t, std::string>;

// Adds what the scan finds until its end or the first damage.
absl::Status Scan(SqlDatabase* database, absl::string_view table_and_order, IdsByNumber* found) {
  const auto scan = [&]() -> absl::Status {
    SPEXD_ASSIGN_OR_RETURN(SqlStatement rows,
                           database->Prepare(absl::StrCat("SELECT number, id FROM ", table_and_order)));
    for (;;) {
      SPEXD_ASSIGN_OR_RETURN(const bool row, rows.Step());
      if (!row) return absl::OkStatus();
      found->emplace(rows.Integer(0), rows.Text(1));
    }
  };
  const absl::Status status = scan();
  return absl::IsDataLoss(status) ? absl::OkStatus() : status;
}

// DataLoss: it is damaged, or another job has its id or its request.
absl::Status CopyRow(SqlDatabase* from, int64_t number, SqlDatabase* to) {
  SPEXD_ASSIGN_OR_RETURN(SqlStatement find, from->Prepare(SelectWhole("WHERE number = ?1")));
  SPEXD_ASSIGN_OR_RETURN(const bool found, find.Bind(1, number).Step());
  if (!found) return absl::DataLossError("its row is not in the table");
  SPEXD_ASSIGN_OR_RETURN(const JobRow row, ReadWholeRow(find));
  const absl::Status inserted = InsertRow(to, row, RowNumber::kOfRow);
  return absl::IsAlreadyExists(inserted) ? absl::DataLossError(inserted.message()) : inserted;
}

// Copies what is intact of `damaged` to the tables of `to`.
absl::StatusOr<RescuedJournal> CopyRows(const std::string& damaged, SqlDatabase* to) {
  SPEXD_ASSIGN_OR_RETURN(SqlDatabase from, SqlDatabase::Open(damaged));
  if (const absl::Status set = from.Execute("PRAGMA trusted_schema=OFF; PRAGMA cell_size_check=ON");
      !set.ok() && !absl::IsDataLoss(set)) {
    return set;
  }
  IdsByNumber jobs;
  for (const char* where : {"jobs INDEXED BY sqlite_autoindex_jobs_1 ORDER BY id",
                            "jobs INDEXED BY sqlite_autoindex_jobs_1 ORDER BY id DESC",
                            "jobs NOT INDEXED ORDER BY number", "jobs NOT INDEXED ORDER BY number DESC"}) {
    SPEXD_RETURN_IF_ERROR(Scan(&from, where, &jobs));
  }
  SPEXD_ASSIGN_OR_RETURN(SqlTransaction transaction, SqlTransaction::Begin(to));
  RescuedJournal result;
  for (const auto& [number, id] : jobs) {
    const absl::Status copied = CopyRow(&from, number, to);
    if (copied.ok()) {
      ++result.intact;
    } else if (absl::IsDataLoss(copied)) {
      result.damaged.push_back({number, ForMessage(id), std::string(copied.message())});
    } else {
      return copied;
    }
  }
  SPEXD_RETURN_IF_ERROR(transaction.Commit());
  return result;
}

// A copy of the damaged file with the first page of a new journal. That page tells where the tables lie: at
// the same places in all journals that began with this version.
absl::Status CopyWithFirstPage(const std::string& fresh, const std::string& damaged,
                               const std::string& copy) {
  constexpr size_t kPageBytes = 4096, kPagesAt = 28;  // in the file, big-endian
  SPEXD_RETURN_IF_ERROR(MakePrivateFile(copy));
  std::error_code error;
  std::filesystem::copy_file(damaged, copy, std::filesystem::copy_options::overwrite_existing, error);
  const uint64_t bytes = error ? 0 : std::filesystem::file_size(copy, error);
  if (error) return absl::UnavailableError(absl::StrCat(copy, ": cannot be written: ", error.message()));
  const FileDescriptor from(open(fresh.c_str(), O_RDONLY | O_CLOEXEC));
  const FileDescriptor to(open(copy.c_str(), O_WRONLY | O_CLOEXEC));
  if (from.get() < 0) return DiskError(fresh, "cannot be opened");
  if (to.get() < 0) return DiskError(copy, "cannot be opened");
  SPEXD_ASSIGN_OR_RETURN(std::string page, ReadAt(from, fresh, kPageBytes, 0));
  if (page.size() != kPageBytes) return absl::UnavailableError(absl::StrCat(fresh, ": is cut short"));
  const uint64_t pages = bytes / kPageBytes;
  for (size_t k = 0; k < 4; ++k) page[kPagesAt + k] = static_cast<char>(pages >> (24 - 8 * k) & 0xff);
  return WriteAt(to, copy, page, 0);
}

}  // namespace

absl::StatusOr<RescuedJournal> RescueJournal(const std::string& damaged, const std::string& rescued) {
  const std::string copy = rescued + "-copy";
  for (const std::string& file : {rescued, copy}) {
    for (const char* end : {"", "-journal", "-wal", "-shm"}) RemoveFile(file + end);
  }
  SPEXD_RETURN_IF_ERROR(MakePrivateFile(rescued));
  SPEXD_ASSIGN_OR_RETURN(SqlDatabase to, SqlDatabase::Open(rescued));
  SPEXD_RETURN_IF_ERROR(to.Execute("PRAGMA synchronous=EXTRA"));
  {
    SPEXD_ASSIGN_OR_RETURN(SqlTransaction transaction, SqlTransaction::Begin(&to));
    SPEXD_RETURN_IF_ERROR(MakeJournalTables(&to));
    SPEXD_RETURN_IF_ERROR(transaction.Commit());
  }
  SPEXD_ASSIGN_OR_RETURN(RescuedJournal result, CopyRows(damaged, &to));
  if (result.intact > 0) return result;
  SPEXD_RETURN_IF_ERROR(CopyWithFirstPage(rescued, damaged, copy));
  SPEXD_ASSIGN_OR_RETURN(RescuedJournal of_copy, CopyRows(copy, &to));
  RemoveFile(copy);
  return of_copy.intact > 0 ? of_copy : result;
}

absl::StatusOr<std::set<std::string>> IdsOfRescued(const std::string& rescued) {
  SPEXD_ASSIGN_OR_RETURN(SqlDatabase database, SqlDatabase::Open(rescued));
  SPEXD_ASSIGN_OR_RETURN(SqlStatement list, database.Prepare("SELECT id FROM jobs"));
  std::set<std::string> ids;
  for (;;) {
    SPEXD_ASSIGN_OR_RETURN(const bool row, list.Step());
    if (!row) return ids;
    ids.insert(list.Text(0));
  }
}

}  // namespace spexd
