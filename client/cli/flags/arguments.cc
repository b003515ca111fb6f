#include "client/cli/flags/arguments.h"

#include <algorithm>
#include <cstddef>
#include <numeric>
#include <utility>

namespace spexd::cli {
namespace {

constexpr size_t kMostSlips = 2;  // letters

// Letters to insert, remove, replace or swap with their neighbour in order to turn `a` into `b`.
size_t Distance(const std::string& a, const std::string& b) {
  std::vector<size_t> before, above(b.size() + 1), row(b.size() + 1);
  std::iota(above.begin(), above.end(), size_t{0});
  for (size_t i = 1; i <= a.size(); ++i) {
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      row[j] = std::min({above[j] + 1, row[j - 1] + 1, above[j - 1] + (a[i - 1] != b[j - 1])});
      const bool swapped = i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1];
      if (swapped) row[j] = std::min(row[j], before[j - 2] + 1);
    }
    before = std::exchange(above, row);
  }
  return above.back();
}

}  // namespace

std::vector<std::string> WithCommand(std::vector<std::string> arguments) {
  if (arguments.empty()) return arguments;
  const std::string first = arguments[0];
  if (first == "help") {
    arguments.erase(arguments.begin());
    arguments.push_back("--help");
    return arguments;
  }
  const std::string own[] = {"-h", "--help", "-V", "--version"};
  const bool is_own = std::find(std::begin(own), std::end(own), first) != std::end(own);
  if (first.size() > 1 && first[0] == '-' && !is_own) arguments.insert(arguments.begin(), "extract");
  return arguments;
}

std::string MeantCommand(const std::string& word, const std::vector<std::string>& commands) {
  std::string meant;
  size_t least = kMostSlips + 1;
  for (const std::string& command : commands) {
    const size_t slips = Distance(word, command);
    // A command of which half the letters or more would have to change is not what the user meant.
    if (slips < least && 2 * slips < command.size()) {
      least = slips;
      meant = command;
    }
  }
  return meant;
}

}  // namespace spexd::cli
