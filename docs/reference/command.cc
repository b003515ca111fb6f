#include "docs/reference/command.h"

#include <nlohmann/json.hpp>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

namespace spexd::reference {
namespace {

// Returns the values in braces of a type name, such as "TEXT:{b,r,z}"; empty if there are none.
std::vector<std::string> ChoicesOf(const CLI::Option& option) {
  const std::string type = option.get_type_name();
  const size_t begin = type.find('{'), end = type.find('}');
  if (begin == std::string::npos || end == std::string::npos || end < begin) return {};
  return absl::StrSplit(type.substr(begin + 1, end - begin - 1), ',');
}

Flag ReadFlag(const CLI::Option& option) {
  Flag flag;
  for (const std::string& name : option.get_snames()) flag.names.push_back("-" + name);
  for (const std::string& name : option.get_lnames()) flag.names.push_back("--" + name);
  flag.takes_value = option.get_items_expected_max() > 0;
  flag.choices = ChoicesOf(option);
  flag.help = option.get_description();
  return flag;
}

}  // namespace

Command Read(const CLI::App& app, std::vector<std::string> path) {
  Command command;
  command.path = std::move(path);
  command.help = app.get_description();
  for (const CLI::Option* option : app.get_options()) {
    const bool hidden = option->get_group().empty();
    if (!hidden && !option->get_positional()) command.flags.push_back(ReadFlag(*option));
  }
  for (const CLI::App* below : app.get_subcommands([](const CLI::App*) { return true; })) {
    std::vector<std::string> deeper = command.path;
    deeper.push_back(below->get_name());
    command.commands.push_back(Read(*below, std::move(deeper)));
  }
  return command;
}

Command ReadScript(const std::string& json) {
  const nlohmann::json described = nlohmann::json::parse(json);
  Command command;
  described.at("path").get_to(command.path);
  described.at("help").get_to(command.help);
  for (const nlohmann::json& one : described.at("flags")) {
    Flag& flag = command.flags.emplace_back();
    one.at("names").get_to(flag.names);
    one.at("takes_value").get_to(flag.takes_value);
    one.at("choices").get_to(flag.choices);
    one.at("help").get_to(flag.help);
  }
  return command;
}

}  // namespace spexd::reference
