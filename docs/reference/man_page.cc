#include "docs/reference/man_page.h"

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"

namespace spexd::reference {
namespace {

// Text as troff prints it unchanged: no escapes, no requests, and hyphens that can be copied.
std::string Escaped(const std::string& text) {
  std::string escaped = absl::StrReplaceAll(text, {{"\\", "\\e"}, {"-", "\\-"}, {"`", "\\(ga"}});
  if (!escaped.empty() && (escaped[0] == '.' || escaped[0] == '\'')) escaped.insert(0, "\\&");
  return escaped;
}

std::string Line(const std::string& text) { return absl::StrCat(Escaped(text), "\n"); }

// What CLI11 left to its columns, as lines of their own.
std::string Paragraphs(const std::string& text) {
  std::string out;
  for (absl::string_view line : absl::StrSplit(text, '\n')) {
    const std::string stripped(absl::StripAsciiWhitespace(line));
    if (stripped.empty()) continue;
    if (!out.empty()) absl::StrAppend(&out, line[0] == ' ' ? ".PP\n" : ".br\n");
    absl::StrAppend(&out, Line(stripped));
  }
  return out;
}

// "spex psf load" of {"spex", "psf", "load"}.
std::string Words(const Command& command) { return absl::StrJoin(command.path, " "); }
std::string PageName(const Command& command) { return absl::StrJoin(command.path, "-"); }

std::string Synopsis(const Command& command) {
  std::string text = absl::StrCat(".B ", Escaped(Words(command)), "\n");
  if (!command.commands.empty()) return absl::StrCat(text, "[\\fIOPTIONS\\fR] \\fICOMMAND\\fR ...\n");
  absl::StrAppend(&text, "[\\fIOPTIONS\\fR]");
  for (const Positional& one : command.positionals)
    absl::StrAppend(&text, " \\fI", Escaped(one.name), "\\fR");
  return absl::StrCat(text, "\n");
}

// A title in bold and what is said of it.
std::string Entry(const std::string& title, const std::string& value, const std::string& help) {
  std::string text = absl::StrCat(".TP\n\\fB", title, "\\fR", Escaped(value), "\n");
  return absl::StrCat(text, help.empty() ? "\\&\n" : Line(help));
}

std::string Flags(const Command& command) {
  std::string text;
  for (const Positional& one : command.positionals)
    absl::StrAppend(&text, Entry(Escaped(one.name), one.value, one.help));
  for (const Flag& flag : command.flags) {
    std::vector<std::string> names;
    for (const std::string& name : flag.names) names.push_back(Escaped(name));
    absl::StrAppend(&text, Entry(absl::StrJoin(names, "\\fR, \\fB"), flag.value, flag.help));
  }
  return text;
}

std::string Commands(const Command& program) {
  std::string text;
  for (const Command& command : program.commands)
    absl::StrAppend(&text, Entry(Escaped(command.path.back()), "", command.help));
  return text;
}

// The page of `command`; the commands below it are described on it if `whole`.
ManPage Page(const Command& command, const Edition& edition, bool whole) {
  const std::string name = PageName(command);
  ManPage page{absl::StrCat(name, ".", edition.section), ""};
  std::string& text = page.text;
  text = absl::StrFormat(".TH %s %d %s \"spexd %s\" \"spexd\"\n", absl::AsciiStrToUpper(Escaped(name)),
                         edition.section, edition.date, edition.version);
  const std::string said = absl::StrReplaceAll(command.help, {{command.path.back() + ": ", ""}});
  absl::StrAppend(&text, ".SH NAME\n", Escaped(name), " \\- ", Escaped(said), "\n.SH SYNOPSIS\n",
                  Synopsis(command));
  if (!command.commands.empty()) absl::StrAppend(&text, ".SH COMMANDS\n", Commands(command));
  absl::StrAppend(&text, ".SH OPTIONS\n", Flags(command));
  for (const Command& below : command.commands) {
    if (!whole) break;
    absl::StrAppend(&text, ".SH ", absl::AsciiStrToUpper(Escaped(Words(below))), "\n", Line(below.help),
                    ".PP\n", Synopsis(below), Flags(below));
  }
  if (!command.footer.empty()) absl::StrAppend(&text, ".SH NOTES\n", Paragraphs(command.footer));
  absl::StrAppend(&text, ".SH SEE ALSO\n");
  absl::StrAppend(&text, Line(edition.see_also));
  return page;
}

}  // namespace

std::vector<ManPage> ManPages(const Command& program, const Edition& edition) {
  Edition of_commands = edition;
  of_commands.see_also = absl::StrCat(program.path[0], "(", edition.section, "), ", edition.see_also);
  Edition of_program = edition;
  std::vector<ManPage> pages;
  for (const Command& command : program.commands) {
    pages.push_back(Page(command, of_commands, true));
    absl::StrAppend(&of_program.see_also, ", ", PageName(command), "(", edition.section, ")");
  }
  pages.push_back(Page(program, of_program, false));
  return pages;
}

}  // namespace spexd::reference
