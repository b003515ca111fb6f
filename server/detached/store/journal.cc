#include "server/detached/store/journal.h"

#include <algorithm>
#include <climits>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "core/base/status_macros.h"
#include "core/base/text.h"
#include "server/base/files.h"

namespace spexd {
namespace {

constexpr char kHeader[] = "header";  // the one column of bytes

constexpr char kSchema[] = R"(
CREATE TABLE jobs (
  number INTEGER PRIMARY KEY AUTOINCREMENT,
  id TEXT NOT NULL UNIQUE,
  owner TEXT NOT NULL,
  request_id TEXT NOT NULL,
  image TEXT NOT NULL,
  psf TEXT NOT NULL,
  header BLOB NOT NULL,
  digest TEXT NOT NULL,
  trace_id TEXT NOT NULL,
  keep_seconds INTEGER NOT NULL,
  submitted REAL NOT NULL,
  state INTEGER NOT NULL,
  priority INTEGER NOT NULL,
  started REAL NOT NULL,
  ended REAL NOT NULL,
  expires REAL NOT NULL,
  runs INTEGER NOT NULL,
  setbacks INTEGER NOT NULL,
  bundles_done INTEGER NOT NULL,
  bundles_total INTEGER NOT NULL,
  last_sequence INTEGER NOT NULL,
  acknowledged INTEGER NOT NULL,
  input_bytes INTEGER NOT NULL,
  result_bytes INTEGER NOT NULL,
  code INTEGER NOT NULL,
  message TEXT NOT NULL,
  UNIQUE (owner, request_id)
);
CREATE INDEX jobs_expire ON jobs (expires) WHERE expires > 0;
)";

// Calls `visit(column, field)` for each field that is fixed when a job is submitted.
template <typename Row, typename Visit>
void VisitFixed(Row& row, Visit&& visit) {
  visit("id", row.id);
  visit("owner", row.owner);
  visit("request_id", row.request_id);
  visit("image", row.image);
  visit("psf", row.psf);
  visit(kHeader, row.header);
  visit("digest", row.digest);
  visit("trace_id", row.trace_id);
  visit("keep_seconds", row.keep_seconds);
  visit("submitted", row.submitted);
}

// The same for each field that changes.
template <typename Row, typename Visit>
void VisitChanging(Row& row, Visit&& visit) {
  visit("state", row.state);
  visit("priority", row.priority);
  visit("started", row.started);
  visit("ended", row.ended);
  visit("expires", row.expires);
  visit("runs", row.runs);
  visit("setbacks", row.setbacks);
  visit("bundles_done", row.bundles_done);
  visit("bundles_total", row.bundles_total);
  visit("last_sequence", row.last_sequence);
  visit("acknowledged", row.acknowledged);
  visit("input_bytes", row.input_bytes);
  visit("result_bytes", row.result_bytes);
  visit("code", row.code);
  visit("message", row.message);
}

// Reads fields from columns, one after the other.
class RowReader {
 public:
  RowReader(const SqlStatement& at, int column) : at_(at), column_(column) {}
  void operator()(const char*, std::string& field) { field = at_.Text(column_++); }
  void operator()(const char*, double& field) { field = at_.Real(column_++); }
  template <typename Integer>
  void operator()(const char*, Integer& field) {
    int64_t value = at_.Integer(column_++);
    // The nearest int where it is one: what is out of range stays so.
    if (sizeof(Integer) == sizeof(int)) value = std::clamp<int64_t>(value, INT_MIN, INT_MAX);
    field = static_cast<Integer>(value);
  }

 private:
  const SqlStatement& at_;
  int column_;
};

// Binds fields to parameters, one after the other.
class RowBinder {
 public:
  explicit RowBinder(SqlStatement* statement) : statement_(statement) {}
  void operator()(const char* column, const std::string& field) {
    if (absl::string_view(column) == kHeader) {
      statement_->BindBytes(parameter_++, field);
    } else {
      statement_->BindText(parameter_++, field);
    }
  }
  void operator()(const char*, double field) { statement_->Bind(parameter_++, field); }
  template <typename Integer>
  void operator()(const char*, const Integer& field) {
    statement_->Bind(parameter_++, static_cast<int64_t>(field));
  }
  int next() const { return parameter_; }

 private:
  SqlStatement* const statement_;
  int parameter_ = 1;
};

std::vector<std::string> FixedColumns() {
  std::vector<std::string> names;
  const JobRow row;
  VisitFixed(row, [&](const char* column, const auto&) { names.push_back(column); });
  return names;
}

std::vector<std::string> ChangingColumns() {
  std::vector<std::string> names;
  const JobRow row;
  VisitChanging(row, [&](const char* column, const auto&) { names.push_back(column); });
  return names;
}

std::vector<std::string> AllColumns() {
  std::vector<std::string> names = FixedColumns();
  for (std::string& column : ChangingColumns()) names.push_back(std::move(column));
  return names;
}

std::string Select(const std::vector<std::string>& columns, absl::string_view rest) {
  return absl::StrCat("SELECT number, ", absl::StrJoin(columns, ", "), " FROM jobs ", rest);
}
std::string SelectWhole(absl::string_view rest) { return Select(AllColumns(), rest); }
// Lists have no headers, as many would take much memory.
std::string SelectForList(absl::string_view rest) {
  std::vector<std::string> columns = AllColumns();
  std::replace(columns.begin(), columns.end(), std::string(kHeader), std::string("''"));
  return Select(columns, rest);
}

absl::StatusOr<JobRow> RowOf(const SqlStatement& at) {
  JobRow row;
  row.number = at.Integer(0);
  RowReader read(at, 1);
  VisitFixed(row, read);
  VisitChanging(row, read);
  const absl::Status good = CheckRow(row);
  if (good.ok()) return row;
  return absl::DataLossError(
      absl::StrFormat("the journal is damaged: job %d: %s", row.number, good.message()));
}

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
    SPEXD_ASSIGN_OR_RETURN(JobRow row, RowOf(list));
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
  // With its indices, by which jobs are found.
  SPEXD_ASSIGN_OR_RETURN(SqlStatement check, database_.Prepare("PRAGMA integrity_check(1)"));
  SPEXD_ASSIGN_OR_RETURN(const bool row, check.Step());
  if (!row || check.Text(0) != "ok")
    return absl::DataLossError(
        absl::StrCat("the journal is damaged: ", row ? ForMessage(check.Text(0)) : "no answer"));
  check = SqlStatement();
  SPEXD_ASSIGN_OR_RETURN(const int64_t version, database_.Integer("PRAGMA user_version"));
  if (version > kVersion) {
    return absl::FailedPreconditionError(absl::StrFormat(
        "the journal has version %d, this spexd knows up to %d: start the newer one", version, kVersion));
  }
  if (version == kVersion) {
    if (!database_.Prepare(SelectWhole("")).ok())
      return absl::DataLossError("the journal's tables are not those of its version");
    // By which jobs are found; bytes and text that look alike are not the same to SQLite.
    SPEXD_ASSIGN_OR_RETURN(
        const int64_t others,
        database_.Integer(
            "SELECT COUNT(*) FROM jobs WHERE typeof(id) <> 'text' OR typeof(owner) <> 'text' OR "
            "typeof(request_id) <> 'text'"));
    if (others > 0)
      return absl::DataLossError(
          absl::StrFormat("the journal is damaged: %d jobs have names of bytes", others));
    return Visit([](const JobRow&) {});
  }
  SPEXD_ASSIGN_OR_RETURN(const int64_t tables, database_.Integer("SELECT COUNT(*) FROM sqlite_master"));
  if (tables > 0) return absl::DataLossError("the journal has tables, but no version");
  SPEXD_ASSIGN_OR_RETURN(SqlTransaction transaction, SqlTransaction::Begin(&database_));
  SPEXD_RETURN_IF_ERROR(database_.Execute(kSchema));
  SPEXD_RETURN_IF_ERROR(database_.Execute(absl::StrCat("PRAGMA user_version=", kVersion).c_str()));
  return transaction.Commit();
}

absl::Status Journal::Insert(const JobRow& row) {
  MutexLock lock(&mutex_);
  SPEXD_RETURN_IF_ERROR(CheckWritten(row));
  const std::vector<std::string> columns = AllColumns();
  const std::vector<std::string> parameters(columns.size(), "?");
  SPEXD_ASSIGN_OR_RETURN(SqlStatement insert,
                         database_.Prepare(absl::StrCat("INSERT INTO jobs (", absl::StrJoin(columns, ", "),
                                                        ") VALUES (", absl::StrJoin(parameters, ", "), ")")));
  RowBinder bind(&insert);
  VisitFixed(row, bind);
  VisitChanging(row, bind);
  return insert.Run();
}

absl::StatusOr<std::optional<JobRow>> Journal::FindOne(SqlStatement statement) {
  SPEXD_ASSIGN_OR_RETURN(const bool found, statement.Step());
  if (!found) return std::optional<JobRow>();
  SPEXD_ASSIGN_OR_RETURN(JobRow row, RowOf(statement));
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
  SPEXD_ASSIGN_OR_RETURN(
      SqlStatement update,
      database_.Prepare(
          absl::StrCat("UPDATE jobs SET ", absl::StrJoin(ChangingColumns(), " = ?, "), " = ? WHERE id = ?")));
  RowBinder bind(&update);
  VisitChanging(*row, bind);
  SPEXD_RETURN_IF_ERROR(update.BindText(bind.next(), id).Run());
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

absl::StatusOr<double> Journal::NextExpiry() {
  MutexLock lock(&mutex_);
  SPEXD_ASSIGN_OR_RETURN(
      SqlStatement next,
      database_.Prepare("SELECT expires FROM jobs WHERE expires > 0 ORDER BY expires LIMIT 1"));
  SPEXD_ASSIGN_OR_RETURN(const bool found, next.Step());
  return found ? next.Real(0) : std::numeric_limits<double>::infinity();
}

absl::Status Journal::ForEach(const std::function<void(const JobRow&)>& visit) {
  MutexLock lock(&mutex_);
  return Visit(visit);
}

absl::Status Journal::Visit(const std::function<void(const JobRow&)>& visit) {
  SPEXD_ASSIGN_OR_RETURN(SqlStatement list, database_.Prepare(SelectForList("ORDER BY number")));
  for (;;) {
    SPEXD_ASSIGN_OR_RETURN(const bool found, list.Step());
    if (!found) return absl::OkStatus();
    SPEXD_ASSIGN_OR_RETURN(const JobRow row, RowOf(list));
    visit(row);
  }
}

}  // namespace spexd
