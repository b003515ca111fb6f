// Manual pages, as troff with the macros of man(7).
#ifndef SPEXD_DOCS_REFERENCE_MAN_PAGE_H_
#define SPEXD_DOCS_REFERENCE_MAN_PAGE_H_

#include <string>
#include <vector>

#include "docs/reference/command.h"

namespace spexd::reference {

struct ManPage {
  std::string file;  // "spex-extract.1"
  std::string text;
};

struct Edition {
  std::string version;
  std::string date;      // "2026-11-23"
  int section = 1;       // of the manual
  std::string see_also;  // "spexd(8)"
};

// A page of the program and one of each of its commands; a command's own commands are on its page.
std::vector<ManPage> ManPages(const Command& program, const Edition& edition);

}  // namespace spexd::reference

#endif  // SPEXD_DOCS_REFERENCE_MAN_PAGE_H_
