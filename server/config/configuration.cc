#include "server/config/configuration.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <map>
#include <sstream>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "core/base/status_macros.h"
#include "core/base/text.h"
#include "server/config/command_line.h"
#include "server/config/option_table.h"
#include "server/config/small_file.h"

namespace spexd {
namespace {

constexpr char kConfigVariable[] = "SPEXD_CONFIG";

// An option's texts, and the name that tells the user where they were given.
struct Given {
  std::string name;
  std::vector<std::string> texts;
};
using AllGiven = std::map<std::string, Given>;  // key: the option's name

// "; did you mean X?" for the name X that `word` is a slip of; "" if there is none.
std::string DidYouMean(const std::string& word, const std::vector<std::string>& names) {
  const std::string meant = MeantWord(word, names);
  return meant.empty() ? "" : absl::StrCat("; did you mean ", meant, "?");
}

// The error message about the first flag that does not exist; "" if all exist.
std::string UnknownFlag(const CLI::App& app) {
  std::vector<std::string> flags;
  for (const CLI::Option* option : app.get_options()) flags.push_back("--" + option->get_lnames()[0]);
  for (const std::string& argument : app.remaining()) {
    if (!absl::StartsWith(argument, "-")) continue;
    const std::string flag = argument.substr(0, argument.find('='));
    const std::string meant = DidYouMean(flag, flags);
    return absl::StrCat("spexd: there is no flag ", ForMessage(flag),
                        meant.empty() ? "; --help-all lists them" : meant, "\n");
  }
  return "";
}

absl::Status AddFile(const std::string& path, const std::vector<Option>& table, AllGiven* given) {
  SPEXD_ASSIGN_OR_RETURN(const std::string text, ReadSmallFile("--config", path));
  int number = 0;
  for (absl::string_view line : absl::StrSplit(text, '\n')) {
    ++number;
    line = absl::StripAsciiWhitespace(line);
    if (line.empty() || line[0] == '#') continue;
    const std::string where = absl::StrCat(path, ":", number, ": ");
    const std::pair<absl::string_view, absl::string_view> parts =
        absl::StrSplit(line, absl::MaxSplits('=', 1));
    if (line.find('=') == absl::string_view::npos) {
      return absl::InvalidArgumentError(
          absl::StrCat(where, "\"", ForMessage(line), "\" is not \"key = value\""));
    }
    const std::string key(absl::StripAsciiWhitespace(parts.first));
    const auto option =
        std::find_if(table.begin(), table.end(), [&](const Option& o) { return o.name == key; });
    if (option == table.end()) {
      std::vector<std::string> names;
      for (const Option& known : table) names.push_back(known.name);
      return absl::InvalidArgumentError(
          absl::StrCat(where, "there is no option \"", ForMessage(key), "\"", DidYouMean(key, names)));
    }
    const auto [found, first] = given->try_emplace(key, Given{where + key, {}});
    if (!first && !option->is_list()) {
      return absl::InvalidArgumentError(
          absl::StrCat(where, key, " is set again, first at ", found->second.name));
    }
    found->second.texts.emplace_back(absl::StripAsciiWhitespace(parts.second));
  }
  return absl::OkStatus();
}

void AddEnvironment(const Environment& environment, const std::vector<Option>& table, AllGiven* given) {
  for (const Option& option : table) {
    const char* value = environment(option.environment().c_str());
    if (value == nullptr) continue;
    Given& of = (*given)[option.name] = {option.environment(), {value}};
    if (option.is_list()) of.texts = absl::StrSplit(value, ':', absl::SkipEmpty());
  }
}

absl::StatusOr<ServerOptions> Merge(const std::vector<Option>& table, const AllGiven& given) {
  ServerOptions options;
  for (const Option& option : table) {
    const auto found = given.find(option.name);
    if (found == given.end()) continue;
    SPEXD_RETURN_IF_ERROR(SetOption(option, found->second.name, found->second.texts, &options));
  }
  const auto names = [&given](const std::string& flag) {
    const auto found = given.find(flag.substr(2));
    return found == given.end() ? flag : found->second.name;
  };
  SPEXD_RETURN_IF_ERROR(CheckOptions(options, names));
  return options;
}

// A configuration file with the same values, each with its source in a comment.
std::string Printed(const std::vector<Option>& table, const AllGiven& given, const ServerOptions& options) {
  std::string text;
  for (const Option& option : table) {
    const auto found = given.find(option.name);
    absl::StrAppend(&text, "# ", found == given.end() ? "default" : "from " + found->second.name, "\n");
    for (const std::string& value : OptionTexts(option, options)) {
      absl::StrAppend(&text, value.empty() ? "# " : "", option.name, " = ", value, "\n");
    }
  }
  return text;
}

ParsedCommandLine End(int exit_code, std::string text) {
  ParsedCommandLine parsed;
  parsed.exit_code = exit_code;
  parsed.text = std::move(text);
  return parsed;
}

}  // namespace

ParsedCommandLine ParseCommandLine(int argc, const char* const* argv, const Environment& environment) {
  const std::vector<Option> table = OptionTable();
  CommandLine line(table);
  try {
    line.app.parse(argc, argv);
  } catch (const CLI::CallForHelp&) {
    return End(0, WrappedHelp(line.ShortHelp()));
  } catch (const CLI::ParseError& error) {
    std::ostringstream out, err;
    const int code = line.app.exit(error, out, err);
    if (const std::string unknown = code == 0 ? "" : UnknownFlag(line.app); !unknown.empty())
      return End(2, unknown);
    return End(code == 0 ? 0 : 2, WrappedHelp(out.str()) + err.str());
  }

  AllGiven given;
  absl::Status status;
  if (const char* path = environment(kConfigVariable); line.config.empty() && path != nullptr)
    line.config = path;
  if (!line.config.empty()) status = AddFile(line.config, table, &given);
  AddEnvironment(environment, table, &given);
  for (size_t k = 0; k < table.size(); ++k) {
    if (line.flags[k]->count() > 0) given[table[k].name] = {table[k].flag(), line.flags[k]->results()};
  }
  absl::StatusOr<ServerOptions> options = status.ok() ? Merge(table, given) : status;
  if (!options.ok()) return End(2, absl::StrFormat("spexd: %s\n", options.status().message()));
  if (line.print) return End(0, Printed(table, given, *options));
  ParsedCommandLine parsed;
  parsed.options = *std::move(options);
  parsed.check_only = line.check;
  parsed.check_jobs = line.check_jobs;
  return parsed;
}

std::vector<std::string> NeedRestart(const ServerOptions& from, const ServerOptions& to) {
  std::vector<std::string> flags;
  for (const Option& option : OptionTable()) {
    if (!option.reloadable && OptionTexts(option, from) != OptionTexts(option, to))
      flags.push_back(option.flag());
  }
  return flags;
}

}  // namespace spexd
