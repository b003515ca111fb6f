// SQLite with owners and Status.
#ifndef SPEXD_SERVER_DETACHED_STORE_JOURNAL_SQLITE_H_
#define SPEXD_SERVER_DETACHED_STORE_JOURNAL_SQLITE_H_

#include <sqlite3.h>

#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace spexd {

// A prepared statement, for one use after the other. Not safe to use from many threads.
class SqlStatement {
 public:
  // Values for the statement's parameters, from 1.
  SqlStatement& Bind(int index, int64_t value);
  SqlStatement& Bind(int index, double value);
  SqlStatement& BindText(int index, absl::string_view value);
  SqlStatement& BindBytes(int index, absl::string_view value);

  // True: there is a row, whose columns can be read. False: the statement has run to its end.
  absl::StatusOr<bool> Step();
  absl::Status Run();  // to its end

  int64_t Integer(int column) const;
  double Real(int column) const;
  std::string Text(int column) const;  // text or bytes

 private:
  friend class SqlDatabase;
  struct Finalize {
    void operator()(sqlite3_stmt* statement) const { sqlite3_finalize(statement); }
  };
  absl::Status Note(int result);

  std::unique_ptr<sqlite3_stmt, Finalize> statement_;
  int bound_ = SQLITE_OK;  // the first binding that failed
};

// Not safe to use from many threads.
class SqlDatabase {
 public:
  // DataLoss: the file is damaged, or no database. Unavailable: it cannot be read or written; the message
  // names it.
  static absl::StatusOr<SqlDatabase> Open(const std::string& path);

  absl::StatusOr<SqlStatement> Prepare(absl::string_view sql);
  absl::Status Execute(const char* sql);                   // statements without results
  absl::StatusOr<int64_t> Integer(absl::string_view sql);  // the first column of the first row

 private:
  struct Close {
    void operator()(sqlite3* database) const { sqlite3_close_v2(database); }
  };
  std::unique_ptr<sqlite3, Close> database_;
};

// A transaction: rolled back unless committed. The database outlives it.
class SqlTransaction {
 public:
  static absl::StatusOr<SqlTransaction> Begin(SqlDatabase* database);
  SqlTransaction(SqlTransaction&& other) noexcept : database_(std::exchange(other.database_, nullptr)) {}
  ~SqlTransaction();
  absl::Status Commit();

 private:
  explicit SqlTransaction(SqlDatabase* database) : database_(database) {}
  SqlDatabase* database_;
};

}  // namespace spexd

#endif  // SPEXD_SERVER_DETACHED_STORE_JOURNAL_SQLITE_H_
