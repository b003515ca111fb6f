// How a job's row lies in the journal's table: its columns, the statements that read and write it, its
// checksums.
#ifndef SPEXD_SERVER_DETACHED_STORE_JOURNAL_JOURNAL_ROWS_H_
#define SPEXD_SERVER_DETACHED_STORE_JOURNAL_JOURNAL_ROWS_H_

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "server/detached/store/journal/job_row.h"
#include "server/detached/store/journal/sqlite.h"

namespace spexd {

inline constexpr int kJournalVersion = 2;

// Makes the tables of an empty database. REQUIRES: a transaction is open.
absl::Status MakeJournalTables(SqlDatabase* database);
// Brings the tables of version 1, which had neither deadlines nor checksums, to kJournalVersion. DataLoss: a
// row has a value that no job has. REQUIRES: a transaction is open.
absl::Status MakeJournalTablesOfVersion1(SqlDatabase* database);

// "SELECT ... FROM jobs " and `rest`, for ReadWholeRow.
std::string SelectWhole(absl::string_view rest);
// The same for ReadListedRow: without headers, as many would take much memory.
std::string SelectForList(absl::string_view rest);

// The row at which a statement stands. DataLoss: a value is one that no job has, or is not the one that was
// written, by its checksum.
absl::StatusOr<JobRow> ReadWholeRow(const SqlStatement& at);
absl::StatusOr<JobRow> ReadListedRow(const SqlStatement& at);

// Adds a row. AlreadyExists: there is one of this id, or of this owner and request.
enum class RowNumber { kNext, kOfRow };
absl::Status InsertRow(SqlDatabase* database, const JobRow& row, RowNumber number);
// Writes the fields of the row that change, those behind `submitted` in JobRow. REQUIRES: the row was read
// whole.
absl::Status UpdateRow(SqlDatabase* database, const JobRow& row);

}  // namespace spexd

#endif  // SPEXD_SERVER_DETACHED_STORE_JOURNAL_JOURNAL_ROWS_H_
