#include "server/detached/store/journal/sqlite.h"

#include "absl/strings/str_format.h"
#include "core/base/status_macros.h"
#include "core/base/text.h"

namespace spexd {
namespace {

absl::Status StatusOf(sqlite3* database, int result) {
  const char* file = sqlite3_db_filename(database, "main");
  const std::string message =
      absl::StrFormat("%s: %s", file == nullptr ? "the journal" : file,
                      result == SQLITE_NOMEM ? "out of memory" : ForMessage(sqlite3_errmsg(database)));
  // Not for the disk: the file was opened for writing, but a damaged byte of it forbids that.
  if (result == SQLITE_READONLY) return absl::DataLossError(message);
  switch (result & 0xff) {
    case SQLITE_CORRUPT:
    case SQLITE_NOTADB:
    case SQLITE_ERROR:   // of statements that never change: the tables are not what they should be
    case SQLITE_TOOBIG:  // what was written was not
      return absl::DataLossError(message);
    case SQLITE_CONSTRAINT:
      return absl::AlreadyExistsError(message);
    case SQLITE_NOMEM:
      return absl::ResourceExhaustedError(message);
    default:
      return absl::UnavailableError(message);
  }
}

}  // namespace

SqlStatement& SqlStatement::Bind(int index, int64_t value) {
  if (bound_ == SQLITE_OK) bound_ = sqlite3_bind_int64(statement_.get(), index, value);
  return *this;
}

SqlStatement& SqlStatement::Bind(int index, double value) {
  if (bound_ == SQLITE_OK) bound_ = sqlite3_bind_double(statement_.get(), index, value);
  return *this;
}

SqlStatement& SqlStatement::BindText(int index, absl::string_view value) {
  if (bound_ == SQLITE_OK)
    bound_ = sqlite3_bind_text64(statement_.get(), index, value.data() == nullptr ? "" : value.data(),
                                 value.size(), SQLITE_TRANSIENT, SQLITE_UTF8);
  return *this;
}

SqlStatement& SqlStatement::BindBytes(int index, absl::string_view value) {
  if (bound_ == SQLITE_OK)
    bound_ = sqlite3_bind_blob64(statement_.get(), index, value.data() == nullptr ? "" : value.data(),
                                 value.size(), SQLITE_TRANSIENT);
  return *this;
}

absl::Status SqlStatement::Note(int result) { return StatusOf(sqlite3_db_handle(statement_.get()), result); }

absl::StatusOr<bool> SqlStatement::Step() {
  if (bound_ != SQLITE_OK) return Note(bound_);
  const int result = sqlite3_step(statement_.get());
  if (result == SQLITE_ROW) return true;
  if (result == SQLITE_DONE) return false;
  return Note(result);
}

absl::Status SqlStatement::Run() {
  for (;;) {
    SPEXD_ASSIGN_OR_RETURN(const bool row, Step());
    if (!row) return absl::OkStatus();
  }
}

int64_t SqlStatement::Integer(int column) const { return sqlite3_column_int64(statement_.get(), column); }

double SqlStatement::Real(int column) const { return sqlite3_column_double(statement_.get(), column); }

std::string SqlStatement::Text(int column) const {
  const void* const bytes = sqlite3_column_blob(statement_.get(), column);
  if (bytes == nullptr) return "";
  return std::string(static_cast<const char*>(bytes),
                     static_cast<size_t>(sqlite3_column_bytes(statement_.get(), column)));
}

absl::StatusOr<SqlDatabase> SqlDatabase::Open(const std::string& path) {
  SqlDatabase opened;
  sqlite3* database = nullptr;
  const int result = sqlite3_open_v2(
      path.c_str(), &database, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX, nullptr);
  opened.database_.reset(database);
  if (database == nullptr) return absl::ResourceExhaustedError(path + ": out of memory");
  if (result != SQLITE_OK)
    return absl::UnavailableError(absl::StrFormat("%s: %s", path, ForMessage(sqlite3_errmsg(database))));
  sqlite3_extended_result_codes(database, 1);
  return opened;
}

absl::StatusOr<SqlStatement> SqlDatabase::Prepare(absl::string_view sql) {
  sqlite3_stmt* statement = nullptr;
  const int result =
      sqlite3_prepare_v2(database_.get(), sql.data(), static_cast<int>(sql.size()), &statement, nullptr);
  if (result != SQLITE_OK) return StatusOf(database_.get(), result);
  SqlStatement prepared;
  prepared.statement_.reset(statement);
  return prepared;
}

absl::Status SqlDatabase::Execute(const char* sql) {
  const int result = sqlite3_exec(database_.get(), sql, nullptr, nullptr, nullptr);
  return result == SQLITE_OK ? absl::OkStatus() : StatusOf(database_.get(), result);
}

absl::StatusOr<int64_t> SqlDatabase::Integer(absl::string_view sql) {
  SPEXD_ASSIGN_OR_RETURN(SqlStatement statement, Prepare(sql));
  SPEXD_ASSIGN_OR_RETURN(const bool row, statement.Step());
  return row ? statement.Integer(0) : 0;
}

absl::StatusOr<SqlTransaction> SqlTransaction::Begin(SqlDatabase* database) {
  SPEXD_RETURN_IF_ERROR(database->Execute("BEGIN IMMEDIATE"));
  return SqlTransaction(database);
}

SqlTransaction::~SqlTransaction() {
  if (database_ != nullptr) database_->Execute("ROLLBACK").IgnoreError();  // some errors did it already
}

absl::Status SqlTransaction::Commit() {
  SPEXD_RETURN_IF_ERROR(database_->Execute("COMMIT"));
  database_ = nullptr;
  return absl::OkStatus();
}

}  // namespace spexd
