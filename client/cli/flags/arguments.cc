#include "client/cli/flags/arguments.h"

#include <algorithm>
#include <iterator>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "core/base/text.h"

namespace spexd::cli {
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

namespace {

std::vector<std::string> FlagsOf(const CLI::App& command) {
  std::vector<std::string> flags;
  for (const CLI::Option* option : command.get_options()) {
    for (const std::string& name : option->get_lnames()) flags.push_back("--" + name);
  }
  return flags;
}

bool IsFlag(const std::string& argument) {
  return argument.size() > 1 && argument[0] == '-' && !absl::ascii_isdigit(argument[1]);
}

// "psf load" of `spex psf load`.
std::string FullName(const CLI::App& command) {
  const CLI::App* parent = command.get_parent();
  const bool top = parent == nullptr || parent->get_parent() == nullptr;
  return top ? command.get_name() : absl::StrCat(FullName(*parent), " ", command.get_name());
}

}  // namespace

std::vector<std::string> CommandNames(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::App* command : app.get_subcommands([](const CLI::App*) { return true; })) {
    names.push_back(command->get_name());
  }
  return names;
}

std::string UnknownArgument(const CLI::App& app) {
  const CLI::App* command = &app;
  while (!command->get_subcommands().empty()) command = command->get_subcommands().back();
  const std::vector<std::string> names = CommandNames(*command);
  for (const std::string& argument : app.remaining(/*recurse=*/true)) {
    const bool flag = IsFlag(argument);
    if (!flag && names.empty()) continue;
    const std::string word = flag ? argument.substr(0, argument.find('=')) : argument;
    const std::string meant = MeantWord(word, flag ? FlagsOf(*command) : names);
    return absl::StrCat("spex ", FullName(*command), " has no ", flag ? "flag " : "command ", ForMessage(word),
                        meant.empty() ? absl::StrCat("; `spex ", FullName(*command), " --help` lists them")
                                      : absl::StrCat("; did you mean ", meant, "?"));
  }
  return "";
}

}  // namespace spexd::cli
