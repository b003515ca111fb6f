#include "server/detached/store/journal/journal_rows.h"

#include <algorithm>
#include <bit>
#include <climits>
#include <cstdint>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "core/base/digest/crc32c.h"
#include "core/base/status_macros.h"

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
  deadline REAL NOT NULL,
  header_checksum INTEGER NOT NULL,
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
  checksum INTEGER NOT NULL,
  UNIQUE (owner, request_id)
);
CREATE INDEX jobs_expire ON jobs (expires) WHERE expires > 0;
CREATE INDEX jobs_deadline ON jobs (deadline) WHERE deadline > 0 AND state <= 2;
)";

constexpr char kFromVersion1[] = R"(
ALTER TABLE jobs ADD COLUMN deadline REAL NOT NULL DEFAULT 0;
ALTER TABLE jobs ADD COLUMN header_checksum INTEGER NOT NULL DEFAULT 0;
ALTER TABLE jobs ADD COLUMN checksum INTEGER NOT NULL DEFAULT 0;
CREATE INDEX jobs_deadline ON jobs (deadline) WHERE deadline > 0 AND state <= 2;
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
  visit("deadline", row.deadline);
  visit("header_checksum", row.header_checksum);
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
  int next() const { return column_; }

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

// CRC-32C of a row's fields, but for its number and the bytes of its header, which have a checksum of their
// own: lists are read without them.
class RowDigest {
 public:
  void operator()(const char* column, const std::string& field) {
    if (absl::string_view(column) == kHeader) return;
    Add(field.size());
    crc_ = ExtendCrc32c(crc_, field);
  }
  void operator()(const char*, double field) {
    Add(std::bit_cast<uint64_t>(field + 0.0));
  }  // -0 is stored as 0
  template <typename Integer>
  void operator()(const char*, const Integer& field) {
    Add(static_cast<uint64_t>(static_cast<int64_t>(field)));
  }
  int64_t crc() const { return crc_; }

 private:
  void Add(uint64_t number) {
    char bytes[sizeof(number)];
    for (size_t k = 0; k < sizeof(number); ++k) bytes[k] = static_cast<char>(number >> (8 * k) & 0xff);
    crc_ = ExtendCrc32c(crc_, absl::string_view(bytes, sizeof(bytes)));
  }

  uint32_t crc_ = 0;
};

int64_t ChecksumOf(const JobRow& row) {
  RowDigest digest;
  VisitFixed(row, digest);
  VisitChanging(row, digest);
  return digest.crc();
}

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
  return absl::StrCat("SELECT number, ", absl::StrJoin(columns, ", "), ", checksum FROM jobs ", rest);
}

absl::Status Damaged(const JobRow& row, absl::string_view why) {
  return absl::DataLossError(absl::StrFormat("the journal is damaged: job %d: %s", row.number, why));
}

// The row as it lies there, and the column behind its fields.
struct RowAsRead {
  JobRow row;
  int next;
};

RowAsRead Read(const SqlStatement& at) {
  JobRow row;
  row.number = at.Integer(0);
  RowReader read(at, 1);
  VisitFixed(row, read);
  VisitChanging(row, read);
  return {std::move(row), read.next()};
}

}  // namespace

absl::Status MakeJournalTables(SqlDatabase* database) {
  SPEXD_RETURN_IF_ERROR(database->Execute(kSchema));
  return database->Execute(absl::StrCat("PRAGMA user_version=", kJournalVersion).c_str());
}

absl::Status MakeJournalTablesOfVersion1(SqlDatabase* database) {
  SPEXD_RETURN_IF_ERROR(database->Execute(kFromVersion1));
  std::vector<int64_t> numbers;
  {
    SPEXD_ASSIGN_OR_RETURN(SqlStatement list, database->Prepare("SELECT number FROM jobs ORDER BY number"));
    for (;;) {
      SPEXD_ASSIGN_OR_RETURN(const bool found, list.Step());
      if (!found) break;
      numbers.push_back(list.Integer(0));
    }
  }
  for (const int64_t number : numbers) {
    SPEXD_ASSIGN_OR_RETURN(SqlStatement find, database->Prepare(SelectWhole("WHERE number = ?1")));
    SPEXD_ASSIGN_OR_RETURN(const bool found, find.Bind(1, number).Step());
    if (!found) return absl::DataLossError(absl::StrFormat("the journal is damaged: no job %d", number));
    JobRow row = Read(find).row;
    find = SqlStatement();
    if (const absl::Status good = CheckRow(row); !good.ok()) return Damaged(row, good.message());
    row.header_checksum = Crc32c(row.header);
    SPEXD_ASSIGN_OR_RETURN(
        SqlStatement update,
        database->Prepare("UPDATE jobs SET header_checksum = ?1, checksum = ?2 WHERE number = ?3"));
    SPEXD_RETURN_IF_ERROR(update.Bind(1, row.header_checksum).Bind(2, ChecksumOf(row)).Bind(3, number).Run());
  }
  return database->Execute(absl::StrCat("PRAGMA user_version=", kJournalVersion).c_str());
}

std::string SelectWhole(absl::string_view rest) { return Select(AllColumns(), rest); }

std::string SelectForList(absl::string_view rest) {
  std::vector<std::string> columns = AllColumns();
  std::replace(columns.begin(), columns.end(), std::string(kHeader), std::string("''"));
  return Select(columns, rest);
}

absl::StatusOr<JobRow> ReadListedRow(const SqlStatement& at) {
  RowAsRead read = Read(at);
  if (const absl::Status good = CheckRow(read.row); !good.ok()) return Damaged(read.row, good.message());
  if (at.Integer(read.next) != ChecksumOf(read.row)) return Damaged(read.row, "its checksum does not match");
  return std::move(read.row);
}

absl::StatusOr<JobRow> ReadWholeRow(const SqlStatement& at) {
  SPEXD_ASSIGN_OR_RETURN(JobRow row, ReadListedRow(at));
  if (row.header_checksum != Crc32c(row.header))
    return Damaged(row, "the checksum of its header does not match");
  return row;
}

absl::Status InsertRow(SqlDatabase* database, const JobRow& row, RowNumber number) {
  JobRow sealed = row;
  sealed.header_checksum = Crc32c(sealed.header);
  std::vector<std::string> columns = AllColumns();
  columns.push_back("checksum");
  if (number == RowNumber::kOfRow) columns.push_back("number");
  const std::vector<std::string> parameters(columns.size(), "?");
  SPEXD_ASSIGN_OR_RETURN(SqlStatement insert,
                         database->Prepare(absl::StrCat("INSERT INTO jobs (", absl::StrJoin(columns, ", "),
                                                        ") VALUES (", absl::StrJoin(parameters, ", "), ")")));
  RowBinder bind(&insert);
  VisitFixed(sealed, bind);
  VisitChanging(sealed, bind);
  insert.Bind(bind.next(), ChecksumOf(sealed));
  if (number == RowNumber::kOfRow) insert.Bind(bind.next() + 1, sealed.number);
  return insert.Run();
}

absl::Status UpdateRow(SqlDatabase* database, const JobRow& row) {
  SPEXD_ASSIGN_OR_RETURN(
      SqlStatement update,
      database->Prepare(absl::StrCat("UPDATE jobs SET ", absl::StrJoin(ChangingColumns(), " = ?, "),
                                     " = ?, checksum = ? WHERE id = ?")));
  RowBinder bind(&update);
  VisitChanging(row, bind);
  return update.Bind(bind.next(), ChecksumOf(row)).BindText(bind.next() + 1, row.id).Run();
}

}  // namespace spexd
