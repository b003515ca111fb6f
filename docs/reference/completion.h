// Completions of a program for three shells. After its name, and after the names of commands, those of the
// commands below; of values those that are known, else files.
#ifndef SPEXD_DOCS_REFERENCE_COMPLETION_H_
#define SPEXD_DOCS_REFERENCE_COMPLETION_H_

#include <string>
#include <vector>

#include "docs/reference/command.h"

namespace spexd::reference {

struct Completed {
  Command program;
  std::vector<std::string> names;  // all that it is called by: {"spex", "spexd-extract"}
  std::string standard;            // the command that flags alone stand for; "": none
};

std::string BashCompletion(const Completed& completed);
std::string ZshCompletion(const Completed& completed);
std::string FishCompletion(const Completed& completed);

}  // namespace spexd::reference

#endif  // SPEXD_DOCS_REFERENCE_COMPLETION_H_
