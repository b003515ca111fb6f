// A journal of detached jobs to begin with, and changes to its cells.
//
// A change is a row's number, a column's, a type, a length (a byte each), and so many bytes of a value.
#ifndef SPEXD_TESTS_FUZZ_SUPPORT_JOURNAL_SAMPLE_H_
#define SPEXD_TESTS_FUZZ_SUPPORT_JOURNAL_SAMPLE_H_

#include <cstdint>
#include <string>
#include <vector>

namespace spexd::fuzz {

// Jobs in each state, some with a spool or an input. REQUIRES: the folder is there and has no journal.
void WriteSampleStore(const std::string& folder);

// What files of the sample have in front.
inline constexpr char kSqliteMagic[] = "SQLite format 3";

enum class CellType : uint8_t { kInteger, kReal, kText, kBytes };
struct CellChange {
  uint8_t row = 0, column = 0;
  CellType type = CellType::kInteger;
  std::string value;  // of numbers: 8 bytes, as they lie in memory
};
std::vector<CellChange> ParseChanges(const std::string& bytes);
std::string ChangeBytesOf(const CellChange& change);

// Makes those changes that the tables allow.
void ChangeCells(const std::string& journal, const std::vector<CellChange>& changes);
// Makes a journal one of version 1, which has no checksums.
void MakeVersion1(const std::string& journal);

}  // namespace spexd::fuzz

#endif  // SPEXD_TESTS_FUZZ_SUPPORT_JOURNAL_SAMPLE_H_
