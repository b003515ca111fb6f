// The command line of spexd as a CLI11 object, made from the table of options. The manual page and the
// completions are made from it too.
#ifndef SPEXD_SERVER_CONFIG_COMMAND_LINE_H_
#define SPEXD_SERVER_CONFIG_COMMAND_LINE_H_

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

#include "server/config/option_table.h"

namespace spexd {

struct CommandLine {
  explicit CommandLine(const std::vector<Option>& table);
  CommandLine(const CommandLine&) = delete;  // app points to the members
  CommandLine& operator=(const CommandLine&) = delete;

  // The text of --help: the common flags only. Hides the others in `app`.
  std::string ShortHelp();

  CLI::App app;
  std::string config, check_jobs;
  bool check = false, print = false;
  std::vector<CLI::Option*> flags;  // in the order of the table

 private:
  std::vector<std::vector<std::string>> texts_;
  bool on_ = false;                 // CLI11 needs a variable for each flag's value
  std::vector<CLI::Option*> rare_;  // flags that only --help-all shows
};

}  // namespace spexd

#endif  // SPEXD_SERVER_CONFIG_COMMAND_LINE_H_
