#include "server/detached/store/journal/journal.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "core/base/status_macros.h"
#include "core/base/text.h"
#include "server/base/files.h"
#include "server/detached/store/journal/journal_rows.h"

namespace spexd {
namespace {

// Internal: it would be taken for damage once it is read.
absl::Status CheckWritten(const JobRow& row) {
  const absl::Status good = CheckRow(row);
  if (good.ok()) return good;
  return absl::InternalError(
      absl::StrFormat("the journal takes no job \"%s\" whose %s", ForMessage(row.id), good.message()));
}

absl::StatusOr<std::vector<JobRow>> RowsOf(SqlStatement list) {
  std::vector<JobRow> rows;
  for (;;) {
    SPEXD_ASSIGN_OR_RETURN(const bool found, list.Step());
    if (!found) return rows;
    SPEXD_ASSIGN_OR_RETURN(JobRow row, ReadListedRow(list));
    rows.push_back(std::move(row));
  }
}

}  // namespace

absl::StatusOr<std::unique_ptr<Journal>> Journal::Open(const std::string& path) {
  SPEXD_RETURN_IF_ERROR(MakePrivateFile(path));  // SQLite's other files have its mode
  SPEXD_ASSIGN_OR_RETURN(SqlDatabase database, SqlDatabase::Open(path));
  std::unique_ptr<Journal> journal(new Journal(path, std::move(database)));
  MutexLock lock(&journal->mutex_);
  absl::Status prepared = journal->Prepare();
  while (journal->GaveRoomAfter(prepared)) prepared = journal->Prepare();
  SPEXD_RETURN_IF_ERROR(prepared);
  // A disk without room for the reserve is no reason not to serve what was noted before.
  journal->reserve_.Fill().IgnoreError();
  return journal;
}

absl::Status Journal::Prepare() {
  // FULL: a commit is on disk when it returns, also where power is lost.
  SPEXD_RETURN_IF_ERROR(
      database_.Execute("PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL; PRAGMA trusted_schema=OFF; "
                        "PRAGMA cell_size_check=ON; PRAGMA busy_timeout=5000"));
  // This includes the indices, by which jobs are found.
  SPEXD_ASSIGN_OR_RETURN(SqlStatement check, database_.Prepare("PRAGMA integrity_check(1)"));
  SPEXD_ASSIGN_OR_RETURN(const bool row, check.Step());
  if (!row || check.Text(0) != "ok")
    return absl::DataLossError(
        absl::StrCat("the journal is damaged: ", row ? ForMessage(check.Text(0)) : "no answer"));
  check = SqlStatement();
  SPEXD_ASSIGN_OR_RETURN(const int64_t version, database_.Integer("PRAGMA user_version"));
  if (version > kJournalVersion) {
    return absl::FailedPreconditionError(
        absl::StrFormat("the journal has version %d, this spexd knows up to %d: start the newer one", version,
                        kJournalVersion));
  }
  if (version == kJournalVersion) return CheckRows();
  SPEXD_ASSIGN_OR_RETURN(const int64_t tables, database_.Integer("SELECT COUNT(*) FROM sqlite_master"));
  if (tables > 0 && version != 1) return absl::DataLossError("the journal has tables, but no version");
  {
    SPEXD_ASSIGN_OR_RETURN(SqlTransaction transaction, SqlTransaction::Begin(&database_));
    SPEXD_RETURN_IF_ERROR(version == 1 ? MakeJournalTablesOfVersion1(&database_)
                                       : MakeJournalTables(&database_));
    SPEXD_RETURN_IF_ERROR(transaction.Commit());
  }
  return CheckRows();
}

absl::Status Journal::CheckRows() {
  if (!database_.Prepare(SelectWhole("")).ok())
    return absl::DataLossError("the journal's tables are not those of its version");
  // Jobs are found by these names. To SQLite, bytes and text that look alike are not the same.
  SPEXD_ASSIGN_OR_RETURN(
      const int64_t others,
      database_.Integer("SELECT COUNT(*) FROM jobs WHERE typeof(id) <> 'text' OR typeof(owner) <> 'text' OR "
                        "typeof(request_id) <> 'text'"));
  if (others > 0)
    return absl::DataLossError(
        absl::StrFormat("the journal is damaged: %d jobs have names of bytes", others));
  SPEXD_ASSIGN_OR_RETURN(SqlStatement all, database_.Prepare(SelectWhole("ORDER BY number")));
  for (;;) {
    SPEXD_ASSIGN_OR_RETURN(const bool found, all.Step());
    if (!found) break;
    SPEXD_RETURN_IF_ERROR(ReadWholeRow(all).status());
  }
  // The next job's number follows from this one.
  SPEXD_ASSIGN_OR_RETURN(const int64_t lost,
                         database_.Integer("SELECT COUNT(*) FROM sqlite_sequence WHERE name <> 'jobs' OR "
                                           "typeof(seq) <> 'integer' OR seq < 0 OR seq > 1 << 62"));
  if (lost > 0) return absl::DataLossError("the journal's last number is damaged");
  return TryInsert();
}

absl::Status Journal::TryInsert() {
  JobRow row;
  row.id = "probe";
  row.state = v1::DETACHED_STATE_QUEUED;
  SPEXD_ASSIGN_OR_RETURN(const SqlTransaction rolled_back, SqlTransaction::Begin(&database_));
  const absl::Status inserted = InsertRow(&database_, row, RowNumber::kNext);
  return absl::IsAlreadyExists(inserted) ? absl::OkStatus() : inserted;
}

absl::Status Journal::Insert(const JobRow& row) {
  MutexLock lock(&mutex_);
  SPEXD_RETURN_IF_ERROR(CheckWritten(row));
  return InsertRow(&database_, row, RowNumber::kNext);
}

absl::StatusOr<std::optional<JobRow>> Journal::FindOne(SqlStatement statement) {
  SPEXD_ASSIGN_OR_RETURN(const bool found, statement.Step());
  if (!found) return std::optional<JobRow>();
  SPEXD_ASSIGN_OR_RETURN(JobRow row, ReadWholeRow(statement));
  return std::make_optional(std::move(row));
}

absl::StatusOr<std::optional<JobRow>> Journal::FindById(const std::string& id) {
  SPEXD_ASSIGN_OR_RETURN(SqlStatement find, database_.Prepare(SelectWhole("WHERE id = ?1")));
  find.BindText(1, id);
  return FindOne(std::move(find));
}

absl::StatusOr<std::optional<JobRow>> Journal::Find(const std::string& id) {
  MutexLock lock(&mutex_);
  return FindById(id);
}

absl::StatusOr<std::optional<JobRow>> Journal::FindRequest(const std::string& owner,
                                                           const std::string& request_id) {
  MutexLock lock(&mutex_);
  SPEXD_ASSIGN_OR_RETURN(SqlStatement find,
                         database_.Prepare(SelectWhole("WHERE owner = ?1 AND request_id = ?2")));
  find.BindText(1, owner).BindText(2, request_id);
  return FindOne(std::move(find));
}

absl::StatusOr<JobRow> Journal::Change(const std::string& id,
                                       const std::function<absl::Status(JobRow*)>& change) {
  MutexLock lock(&mutex_);
  absl::StatusOr<JobRow> changed = TryChange(id, change);
  while (GaveRoomAfter(changed.status())) changed = TryChange(id, change);
  return changed;
}

absl::StatusOr<JobRow> Journal::TryChange(const std::string& id,
                                          const std::function<absl::Status(JobRow*)>& change) {
  SPEXD_ASSIGN_OR_RETURN(SqlTransaction transaction, SqlTransaction::Begin(&database_));
  SPEXD_ASSIGN_OR_RETURN(std::optional<JobRow> row, FindById(id));
  if (!row.has_value()) return absl::NotFoundError(absl::StrFormat("no job \"%s\"", id));
  SPEXD_RETURN_IF_ERROR(change(&*row));
  SPEXD_RETURN_IF_ERROR(CheckWritten(*row));
  SPEXD_RETURN_IF_ERROR(UpdateRow(&database_, *row));
  SPEXD_RETURN_IF_ERROR(transaction.Commit());
  return *std::move(row);
}

absl::Status Journal::Delete(const std::string& id) {
  MutexLock lock(&mutex_);
  absl::Status removed = TryDelete(id);
  while (GaveRoomAfter(removed)) removed = TryDelete(id);
  return removed;
}

absl::Status Journal::TryDelete(const std::string& id) {
  SPEXD_ASSIGN_OR_RETURN(SqlStatement remove, database_.Prepare("DELETE FROM jobs WHERE id = ?1"));
  return remove.BindText(1, id).Run();
}

absl::StatusOr<std::vector<JobRow>> Journal::List(const Filter& filter, int most) {
  MutexLock lock(&mutex_);
  std::string sql = SelectForList("WHERE number < ?1 AND submitted >= ?2");
  if (!filter.owner.empty()) sql += " AND owner = ?4";
  if (!filter.states.empty()) {
    absl::StrAppend(&sql, " AND state IN (",
                    absl::StrJoin(filter.states, ",",
                                  [](std::string* out, v1::DetachedState state) {
                                    absl::StrAppend(out, static_cast<int>(state));
                                  }),
                    ")");
  }
  SPEXD_ASSIGN_OR_RETURN(SqlStatement list, database_.Prepare(sql + " ORDER BY number DESC LIMIT ?3"));
  list.Bind(1, filter.before).Bind(2, filter.submitted_after).Bind(3, int64_t{most});
  if (!filter.owner.empty()) list.BindText(4, filter.owner);
  return RowsOf(std::move(list));
}

absl::StatusOr<std::vector<JobRow>> Journal::Expired(double now, int most) {
  MutexLock lock(&mutex_);
  SPEXD_ASSIGN_OR_RETURN(
      SqlStatement list,
      database_.Prepare(SelectForList("WHERE expires > 0 AND expires <= ?1 ORDER BY expires LIMIT ?2")));
  list.Bind(1, now).Bind(2, int64_t{most});
  return RowsOf(std::move(list));
}

absl::StatusOr<double> Journal::FirstTime(const char* sql) {
  SPEXD_ASSIGN_OR_RETURN(SqlStatement next, database_.Prepare(sql));
  SPEXD_ASSIGN_OR_RETURN(const bool found, next.Step());
  return found ? next.Real(0) : std::numeric_limits<double>::infinity();
}

absl::StatusOr<double> Journal::NextExpiry() {
  MutexLock lock(&mutex_);
  return FirstTime("SELECT expires FROM jobs WHERE expires > 0 ORDER BY expires LIMIT 1");
}

absl::StatusOr<std::vector<JobRow>> Journal::Late(double now, int most) {
  MutexLock lock(&mutex_);
  SPEXD_ASSIGN_OR_RETURN(
      SqlStatement list,
      database_.Prepare(
          SelectForList("WHERE deadline > 0 AND state <= 2 AND deadline <= ?1 ORDER BY deadline LIMIT ?2")));
  list.Bind(1, now).Bind(2, int64_t{most});
  return RowsOf(std::move(list));
}

absl::StatusOr<double> Journal::NextDeadline() {
  MutexLock lock(&mutex_);
  return FirstTime("SELECT deadline FROM jobs WHERE deadline > 0 AND state <= 2 ORDER BY deadline LIMIT 1");
}

absl::Status Journal::ForEach(const std::function<void(const JobRow&)>& visit) {
  MutexLock lock(&mutex_);
  SPEXD_ASSIGN_OR_RETURN(SqlStatement list, database_.Prepare(SelectForList("ORDER BY number")));
  for (;;) {
    SPEXD_ASSIGN_OR_RETURN(const bool found, list.Step());
    if (!found) return absl::OkStatus();
    SPEXD_ASSIGN_OR_RETURN(const JobRow row, ReadListedRow(list));
    visit(row);
  }
}

}  // namespace spexd
