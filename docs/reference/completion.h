// Completions of a program for three shells. They complete commands after the names of the program and of its
// commands, flags, and values: the allowed values if they are known, otherwise files.
#ifndef SPEXD_DOCS_REFERENCE_COMPLETION_H_
#define SPEXD_DOCS_REFERENCE_COMPLETION_H_

#include <string>
#include <vector>

#include "docs/reference/command.h"

namespace spexd::reference {

struct Completed {
  Command program;
  std::vector<std::string> names;  // all names of the program: {"spex", "spexd-extract"}
  std::string standard;            // the command to which flags without a command belong; "": none
};

std::string BashCompletion(const Completed& completed);
std::string ZshCompletion(const Completed& completed);
std::string FishCompletion(const Completed& completed);

}  // namespace spexd::reference

#endif  // SPEXD_DOCS_REFERENCE_COMPLETION_H_
