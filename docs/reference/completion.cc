#include "docs/reference/completion.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"

namespace spexd::reference {
namespace {

// Returns "psf load" for {"spex", "psf", "load"}, and "" for the program itself.
std::string PathOf(const Command& command) {
  return absl::StrJoin(command.path.begin() + 1, command.path.end(), " ");
}

// Calls `visit` with the command and all commands below it.
template <class Visit>
void ForEach(const Command& command, const Visit& visit) {
  visit(command);
  for (const Command& below : command.commands) ForEach(below, visit);
}

std::string Quoted(const std::string& text) {
  return absl::StrCat("'", absl::StrReplaceAll(text, {{"'", "'\\''"}}), "'");
}

std::string NamesBelow(const Command& command) {
  return absl::StrJoin(command.commands, " ",
                       [](std::string* out, const Command& below) { out->append(below.path.back()); });
}

std::string FlagNames(const Command& command) {
  return absl::StrJoin(command.flags, " ", [](std::string* out, const Flag& flag) {
    absl::StrAppend(out, absl::StrJoin(flag.names, " "));
  });
}

// Returns lines of a bash `case` over "command:flag before the cursor", which complete the flag's value.
std::string BashValues(const Command& program) {
  std::string text;
  ForEach(program, [&](const Command& command) {
    for (const Flag& flag : command.flags) {
      if (!flag.takes_value) continue;
      const std::string patterns =
          absl::StrJoin(flag.names, "|", [&](std::string* out, const std::string& name) {
            absl::StrAppend(out, "'", PathOf(command), ":", name, "'");
          });
      absl::StrAppend(&text, "    ", patterns, ") ");
      if (!flag.choices.empty())
        absl::StrAppend(&text, "COMPREPLY=($(compgen -W '", absl::StrJoin(flag.choices, " "),
                        "' -- \"$current\")); ");
      absl::StrAppend(&text, "return ;;\n");
    }
  });
  return text;
}

// Returns a flag in the syntax of zsh's _arguments.
std::string ZshFlag(const Flag& flag, const std::string& name) {
  const std::string help = absl::StrReplaceAll(flag.help, {{"[", "("}, {"]", ")"}, {":", "\\:"}});
  std::string value;
  if (flag.takes_value)
    value = flag.choices.empty() ? ":value:_files"
                                 : absl::StrCat(":value:(", absl::StrJoin(flag.choices, " "), ")");
  return Quoted(absl::StrCat("*", name, "[", help, "]", value));
}

std::string ZshFunction(const Command& command) {
  return "_" + absl::StrReplaceAll(absl::StrJoin(command.path, "_"), {{"-", "_"}});
}

// Returns the zsh function of a command, which completes the words after the command's name.
std::string ZshCommand(const Command& command, const std::string& standard) {
  std::string text = absl::StrCat(ZshFunction(command), "() {\n");
  if (!command.commands.empty()) {
    absl::StrAppend(&text, "  local -a commands=(\n");
    for (const Command& below : command.commands) {
      absl::StrAppend(&text, "    ", Quoted(absl::StrCat(below.path.back(), ":", below.help)), "\n");
    }
    absl::StrAppend(&text,
                    "  )\n  if (( CURRENT == 2 )) && [[ $words[2] != -* ]]; then\n"
                    "    _describe command commands\n    return\n  fi\n  case $words[2] in\n");
    for (const Command& below : command.commands) {
      absl::StrAppend(&text, "    ", below.path.back(), ") shift words; (( CURRENT-- )); ",
                      ZshFunction(below), "; return ;;\n");
      if (below.path.back() == standard)
        absl::StrAppend(&text, "    -*) ", ZshFunction(below), "; return ;;\n");
    }
    absl::StrAppend(&text, "  esac\n");
  }
  absl::StrAppend(&text, "  _arguments");
  for (const Flag& flag : command.flags) {
    for (const std::string& name : flag.names) absl::StrAppend(&text, " \\\n    ", ZshFlag(flag, name));
  }
  return absl::StrCat(text, " \\\n    '*:file:_files'\n}\n");
}

// Returns the condition under which fish offers the completions of the command.
std::string FishCondition(const Command& command, const std::string& standard) {
  const std::string path = PathOf(command);
  const std::string prefix = absl::StrCat("__", command.path[0], "_at ");
  if (path.empty()) return absl::StrCat(prefix, "''");
  const std::string test = absl::StrCat(prefix, "'", path, "'");
  return path == standard ? absl::StrCat(test, "; or ", prefix, "''") : test;
}

std::string FishFlags(const Command& command, const std::string& start) {
  std::string text;
  for (const Flag& flag : command.flags) {
    absl::StrAppend(&text, start);
    for (const std::string& name : flag.names)
      absl::StrAppend(&text, name[1] == '-' ? " -l " + name.substr(2) : " -s " + name.substr(1));
    if (flag.takes_value)
      absl::StrAppend(&text,
                      flag.choices.empty() ? " -r -F" : " -x -a " + Quoted(absl::StrJoin(flag.choices, " ")));
    absl::StrAppend(&text, " -d ", Quoted(absl::StrReplaceAll(flag.help, {{"\\", "\\\\"}})), "\n");
  }
  return text;
}

}  // namespace

std::string BashCompletion(const Completed& completed) {
  const std::string function = "_" + completed.program.path[0];
  std::string paths, replies;
  ForEach(completed.program, [&](const Command& command) {
    const std::string path = PathOf(command);
    if (!path.empty()) absl::StrAppend(&paths, paths.empty() ? "" : "|", "'", path, "'");
    absl::StrAppend(&replies, "    '", path, "') words='", FlagNames(command), "' names='",
                    NamesBelow(command), "' ;;\n");
  });
  const std::string walk = absl::StrCat(
      "  local words names current=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD-1]} path= k\n"
      "  COMPREPLY=()\n",
      paths.empty()
          ? ""
          : absl::StrCat(
                "  for ((k = 1; k < COMP_CWORD; ++k)); do\n"
                "    case \"${path:+$path }${COMP_WORDS[k]}\" in\n      ",
                paths,
                ") path=\"${path:+$path }${COMP_WORDS[k]}\" ;;\n      *) break ;;\n    esac\n  done\n"));
  const std::string standard =
      completed.standard.empty()
          ? ""
          : absl::StrCat("  [[ -z $path && ${COMP_WORDS[1]} == -* ]] && path=", completed.standard, "\n");
  // The first word may be one of the program's own flags, too.
  const std::string own = completed.standard.empty() ? ""
                                                     : absl::StrCat("  ((COMP_CWORD == 1)) && words+=' ",
                                                                    FlagNames(completed.program), "'\n");
  std::string text = absl::StrCat(
      "# Completion of ", completed.program.path[0], " for bash, made from its flags.\n", function, "() {\n",
      walk, standard, "  case \"$path:$before\" in\n", BashValues(completed.program),
      "  esac\n  case \"$path\" in\n", replies, "  esac\n", own,
      "  if [[ $current == -* ]]; then\n    COMPREPLY=($(compgen -W \"$words\" -- \"$current\"))\n"
      "  else\n    COMPREPLY=($(compgen -W \"$names\" -- \"$current\"))\n  fi\n}\n");
  return absl::StrCat(text, "complete -o default -F ", function, " ", absl::StrJoin(completed.names, " "),
                      "\n");
}

std::string ZshCompletion(const Completed& completed) {
  std::string text =
      absl::StrCat("#compdef ", absl::StrJoin(completed.names, " "), "\n# Made from the program's flags.\n");
  ForEach(completed.program,
          [&](const Command& command) { absl::StrAppend(&text, ZshCommand(command, completed.standard)); });
  return absl::StrCat(text, ZshFunction(completed.program), " \"$@\"\n");
}

std::string FishCompletion(const Completed& completed) {
  std::string paths, text;
  ForEach(completed.program, [&](const Command& command) {
    if (command.path.size() > 1) absl::StrAppend(&paths, " '", PathOf(command), "'");
  });
  const std::string at = absl::StrCat("__", completed.program.path[0], "_at");
  text = absl::StrCat(
      "# Completion of ", completed.program.path[0], " for fish, made from its flags.\nfunction ", at,
      "\n  set -l path\n  for word in (commandline -opc)[2..]\n    contains -- (string join ' ' $path $word)",
      paths.empty() ? " ''" : paths,
      "; or break\n    set -a path $word\n  end\n  test \"$path\" = \"$argv[1]\"\nend\n");
  for (const std::string& name : completed.names) {
    ForEach(completed.program, [&](const Command& command) {
      const std::string start =
          absl::StrCat("complete -c ", name, " -n \"", FishCondition(command, completed.standard), "\"");
      if (!command.commands.empty()) {
        for (const Command& below : command.commands)
          absl::StrAppend(&text, "complete -c ", name, " -f -n \"", FishCondition(command, ""), "\" -a ",
                          below.path.back(), " -d ", Quoted(below.help), "\n");
      }
      absl::StrAppend(&text, FishFlags(command, start));
    });
  }
  return text;
}

}  // namespace spexd::reference
