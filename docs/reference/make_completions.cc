// make_completions FOLDER [SCRIPT]: writes the completions of both programs, from the flags that they parse;
// or the completions of a Python script, from the file SCRIPT, which describe_script.py writes.
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include "client/cli/spex_app.h"
#include "docs/reference/completion.h"
#include "server/config/command_line.h"

namespace {

using spexd::reference::Completed;

bool Write(const std::filesystem::path& file, const std::string& text) {
  std::filesystem::create_directories(file.parent_path());
  std::ofstream out(file, std::ios::binary);
  out << text;
  out.close();
  if (!out) std::fprintf(stderr, "make_completions: %s cannot be written\n", file.c_str());
  return out.good();
}

bool WriteAll(const std::filesystem::path& folder, const Completed& completed) {
  const std::string name = completed.program.path[0];
  return Write(folder / "bash" / name, BashCompletion(completed)) &
         Write(folder / "zsh" / ("_" + name), ZshCompletion(completed)) &
         Write(folder / "fish" / (name + ".fish"), FishCompletion(completed));
}

bool WriteScript(const std::string& file, const std::filesystem::path& folder) {
  std::ifstream in(file, std::ios::binary);
  const spexd::reference::Command script =
      spexd::reference::ReadScript(std::string(std::istreambuf_iterator<char>(in), {}));
  return WriteAll(folder, {script, {script.path[0]}, ""});
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2 && argc != 3) return std::fputs("usage: make_completions FOLDER [SCRIPT]\n", stderr), 2;
  if (argc == 3) return WriteScript(argv[2], argv[1]) ? 0 : 1;
  CLI::App spex;
  spexd::cli::Action action;
  spexd::cli::SetUpSpex(&spex, &action);
  const spexd::CommandLine spexd_line(spexd::OptionTable());
  const bool good =
      WriteAll(argv[1], {spexd::reference::Read(spex, {"spex"}), {"spex", "spexd-extract"}, "extract"}) &
      WriteAll(argv[1], {spexd::reference::Read(spexd_line.app, {"spexd"}), {"spexd"}, ""});
  return good ? 0 : 1;
}
