// spexd's flags, made of the table of options: what it parses, and what its manual page and completion are
// made from.
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

  CLI::App app;
  std::string config, check_jobs;
  bool check = false, print = false;
  std::vector<CLI::Option*> flags;  // in the order of the table

 private:
  std::vector<std::vector<std::string>> texts_;
  bool on_ = false;  // CLI11 wants a variable for each flag's value
};

}  // namespace spexd

#endif  // SPEXD_SERVER_CONFIG_COMMAND_LINE_H_
