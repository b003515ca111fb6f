// Changes to journals: a few bytes of a file, or one more cell with a value at or beyond its limits.
#include <algorithm>
#include <cstdint>
#include <cstring>
#include <limits>
#include <string>

#include "absl/strings/match.h"
#include "tests/fuzz/support/journal_sample.h"
#include "tests/fuzz/support/random.h"

namespace spexd::fuzz {
namespace {

constexpr int64_t kIntegers[] = {0,          1,          2,         5,         6,
                                 7,          -1,         13,        100,       101,
                                 0x7fffffff, 0x80000000, INT64_MAX, INT64_MIN, 1000000000000000,
                                 4294967295};
constexpr double kReals[] = {
    0, 1, -1, 1.7e9, 1e11, 1e300, -1e300, 5e-324, std::numeric_limits<double>::infinity()};
constexpr const char* kTexts[] = {"",           "me",    "../../other",
                                  "../journal", "\xff",  "\x1b[31m",
                                  "12",         "1e400", "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"};

template <typename Number, size_t N>
std::string BytesOfOne(const Number (&numbers)[N], Random& random) {
  const Number number = numbers[Below(random, N)];
  return std::string(reinterpret_cast<const char*>(&number), sizeof(number));
}

std::string Cell(Random& random) {
  CellChange change;
  change.row = static_cast<uint8_t>(random());
  change.column = static_cast<uint8_t>(random());
  change.type = static_cast<CellType>(random() % 4);
  if (change.type == CellType::kInteger) {
    change.value = BytesOfOne(kIntegers, random);
  } else if (change.type == CellType::kReal) {
    change.value = BytesOfOne(kReals, random);
  } else {
    change.value = kTexts[Below(random, std::size(kTexts))];
  }
  return ChangeBytesOf(change);
}

void ChangeFile(std::string* file, Random& random) {
  for (size_t changes = 1 + Below(random, 4); changes > 0; --changes) {
    const size_t at = Below(random, file->size());
    std::string piece = file->substr(at, 1 + Below(random, 16));
    const size_t size = piece.size();
    ChangeBytes(&piece, size);
    piece.resize(size);
    file->replace(at, size, piece);
  }
  if (random() % 32 == 0) file->resize(Below(random, file->size()));
}

std::string Changed(std::string input, size_t most, Random& random) {
  if (absl::StartsWith(input, kSqliteMagic)) {
    ChangeFile(&input, random);
  } else if (random() % 4 == 0) {
    ChangeBytes(&input, most);
  } else if (random() % 2 == 0) {
    input = Cell(random) + input;
  } else {
    input = Cell(random);
  }
  return input;
}

}  // namespace
}  // namespace spexd::fuzz

// libFuzzer calls this for its next input.
extern "C" size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size, size_t most, unsigned seed) {
  spexd::fuzz::Random random(seed);
  std::string input = spexd::fuzz::Changed(std::string(reinterpret_cast<char*>(data), size), most, random);
  input.resize(std::min(input.size(), most));
  std::copy(input.begin(), input.end(), data);
  return input.size();
}
