// make_reference FOLDER DATE [SCRIPT]: writes the manual pages and the completions of both programs, from the
// flags that they parse; or those of a Python script that describe_script.py has described in the file
// SCRIPT.
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include "client/cli/spex_app.h"
#include "core/base/version.h"
#include "docs/reference/completion.h"
#include "docs/reference/man_page.h"
#include "server/config/command_line.h"

namespace {

using spexd::reference::Completed;
using spexd::reference::Edition;

bool Write(const std::filesystem::path& file, const std::string& text) {
  std::filesystem::create_directories(file.parent_path());
  std::ofstream out(file, std::ios::binary);
  out << text;
  out.close();
  if (!out) std::fprintf(stderr, "make_reference: %s cannot be written\n", file.c_str());
  return out.good();
}

bool WriteAll(const std::filesystem::path& folder, const Completed& completed, const Edition& edition) {
  bool good = true;
  for (const auto& page : ManPages(completed.program, edition))
    good &= Write(folder / "man" / page.file, page.text);
  const std::string name = completed.program.path[0];
  return good & Write(folder / "bash" / name, BashCompletion(completed)) &
         Write(folder / "zsh" / ("_" + name), ZshCompletion(completed)) &
         Write(folder / "fish" / (name + ".fish"), FishCompletion(completed));
}

bool WriteScript(const std::string& file, const std::filesystem::path& folder, const std::string& date) {
  std::ifstream in(file, std::ios::binary);
  const spexd::reference::Command script =
      spexd::reference::ReadScript(std::string(std::istreambuf_iterator<char>(in), {}));
  return WriteAll(folder, {script, {script.path[0]}, ""}, {spexd::kVersion, date, 1, "spex(1), spexd(8)"});
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3 && argc != 4) return std::fputs("usage: make_reference FOLDER DATE [SCRIPT]\n", stderr), 2;
  if (argc == 4) return WriteScript(argv[3], argv[1], argv[2]) ? 0 : 1;
  CLI::App spex;
  spexd::cli::Action action;
  spexd::cli::SetUpSpex(&spex, &action);
  const spexd::CommandLine spexd_line(spexd::OptionTable());
  const bool good =
      WriteAll(argv[1], {spexd::reference::Read(spex, {"spex"}), {"spex", "spexd-extract"}, "extract"},
               {spexd::kVersion, argv[2], 1, "spexd(8)"}) &
      WriteAll(argv[1], {spexd::reference::Read(spexd_line.app, {"spexd"}), {"spexd"}, ""},
               {spexd::kVersion, argv[2], 8, "spex(1)"}) &
      Write(std::filesystem::path(argv[1]) / "man/spexd-extract.1", ".so man1/spex.1\n");
  return good ? 0 : 1;
}
