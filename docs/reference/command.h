// A command line as completions see it, read from the CLI11 objects that parse it, or from what
// describe_script.py says of the parser of a Python script.
#ifndef SPEXD_DOCS_REFERENCE_COMMAND_H_
#define SPEXD_DOCS_REFERENCE_COMMAND_H_

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

namespace spexd::reference {

struct Flag {
  std::vector<std::string> names;  // with their dashes, short ones first
  bool takes_value = false;
  std::vector<std::string> choices;  // all values that it may have; empty: not known
  std::string help;
};

struct Command {
  std::vector<std::string> path;  // {"spex", "psf", "load"}
  std::string help;
  std::vector<Flag> flags;
  std::vector<Command> commands;
};

// `app` with all commands below it. `path` ends with its name.
Command Read(const CLI::App& app, std::vector<std::string> path);

// A script without commands. Throws nlohmann::json::exception for what describe_script.py would not write.
Command ReadScript(const std::string& json);

}  // namespace spexd::reference

#endif  // SPEXD_DOCS_REFERENCE_COMMAND_H_
