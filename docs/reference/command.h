// A command line as data for completions, read from the CLI11 objects that parse it, or from the description
// of a Python script by describe_script.py.
#ifndef SPEXD_DOCS_REFERENCE_COMMAND_H_
#define SPEXD_DOCS_REFERENCE_COMMAND_H_

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

namespace spexd::reference {

struct Flag {
  std::vector<std::string> names;  // with their dashes, short ones first
  bool takes_value = false;
  std::vector<std::string> choices;  // all allowed values; empty: not known
  std::string help;
};

struct Command {
  std::vector<std::string> path;  // {"spex", "psf", "load"}
  std::string help;
  std::vector<Flag> flags;
  std::vector<Command> commands;
};

// Reads `app` with all commands below it. `path` ends with its name.
Command Read(const CLI::App& app, std::vector<std::string> path);

// Reads a script, which has no commands. Throws nlohmann::json::exception for text that describe_script.py
// does not write.
Command ReadScript(const std::string& json);

}  // namespace spexd::reference

#endif  // SPEXD_DOCS_REFERENCE_COMMAND_H_
