// Compares installed manual pages and completions with the programs' --help.
#include <filesystem>
#include <map>
#include <regex>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "tests/install/install_tree.h"
#include "tests/support/build_paths.h"
#include "tests/support/matchers.h"
#include "tests/support/process.h"

namespace spexd::testing {
namespace {

using ::testing::IsSupersetOf;
using Words = std::vector<std::string>;

bool Missing(const std::string& program) { return RunCommand({"which", program}).exit_code != 0; }

// What the full help of a command lists: its commands, and its flags with their dashes.
struct Help {
  Words commands, flags;
};

Help HelpOf(const Words& path) {
  Words arguments = path;
  arguments[0] = BinFolder() + "/" + path[0];
  arguments.push_back(path[0] == "spexd" ? "--help-all" : "--help");
  const CommandResult said = RunCommand(arguments);
  EXPECT_EQ(said.exit_code, 0) << said.output;
  Help help;
  bool commands = false;
  for (absl::string_view line : absl::StrSplit(said.output, '\n')) {
    if (line == "Subcommands:") commands = true;
    if (line.empty()) commands = false;  // examples may follow
    if (line.size() < 3 || line.substr(0, 2) != "  " || line[2] == ' ') continue;
    const Words words = absl::StrSplit(line.substr(2), absl::MaxSplits(' ', 1));
    if (line[2] != '-') {
      if (commands) help.commands.push_back(words[0]);
      continue;
    }
    for (const std::string& name : Words(absl::StrSplit(words[0], ','))) {
      help.flags.push_back(name.substr(0, name.find('{')));  // "--no-check{false}" becomes "--no-check"
    }
  }
  EXPECT_FALSE(help.flags.empty()) << said.output;
  return help;
}

void AddHelp(const Words& path, std::map<Words, Help>* all) {
  const Help& help = (*all)[path] = HelpOf(path);
  for (const std::string& command : help.commands) {
    Words below = path;
    below.push_back(command);
    AddHelp(below, all);
  }
}

// Returns a flag as manual pages show it.
std::string Bold(const std::string& flag) {
  return "\\fB" + absl::StrReplaceAll(flag, {{"-", "\\-"}}) + "\\fR";
}

class Reference : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    tree_ = new InstallTree({"spex_reference", "spexd_reference"});
    help_ = new std::map<Words, Help>();
    AddHelp({"spex"}, help_);
    AddHelp({"spexd"}, help_);
    EXPECT_GT(help_->size(), 14u);
  }
  static void TearDownTestSuite() {
    delete help_;
    delete tree_;
  }
  // Returns the path of the page that describes a command.
  static std::string Page(const Words& path) {
    const std::string name = absl::StrJoin(path, "-");
    return *tree_ / absl::StrCat("share/man/", path[0] == "spexd" ? "man8/spexd.8" : "man1/" + name + ".1");
  }
  static std::string Completion(const std::string& shell, const std::string& program) {
    const std::map<std::string, std::string> files = {
        {"bash", "bash-completion/completions/" + program},
        {"zsh", "zsh/site-functions/_" + program},
        {"fish", "fish/vendor_completions.d/" + program + ".fish"}};
    return *tree_ / ("share/" + files.at(shell));
  }
  // Returns bash's completions of the last of these words, by the file that it finds for the first word.
  static Words BashOffers(const Words& words) { return BashOffersOf(Completion("bash", words[0]), words); }
  static Words BashOffersOf(const std::string& completion, const Words& words) {
    Words command = {"bash", "-c",
                     "source \"$0\"; COMP_WORDS=(\"$@\"); COMP_CWORD=$(($# - 1)); [[ $(complete -p \"$1\") "
                     "=~ -F\\ ([^ ]+) ]] "
                     "&& ${BASH_REMATCH[1]}; ((${#COMPREPLY[@]} == 0)) || printf '%s\\n' \"${COMPREPLY[@]}\"",
                     completion};
    command.insert(command.end(), words.begin(), words.end());
    const CommandResult said = RunCommand(command);
    EXPECT_EQ(said.exit_code, 0) << said.output;
    return absl::StrSplit(said.output, '\n', absl::SkipEmpty());
  }

  static inline InstallTree* tree_ = nullptr;
  static std::map<Words, Help>* help_;
};
std::map<Words, Help>* Reference::help_ = nullptr;

// Manual pages, which a build makes if help2man is installed.
class Pages : public Reference {
 protected:
  void SetUp() override {
    if (Missing("help2man")) GTEST_SKIP() << "help2man is not installed";
  }
};

TEST_F(Pages, HaveEveryFlagAndCommand) {
  for (const auto& [path, help] : *help_) {
    const std::string page = ReadBytes(Page(path));
    for (const std::string& flag : help.flags) EXPECT_THAT(page, HasSubstr(Bold(flag))) << Page(path);
    for (const std::string& command : help.commands)
      EXPECT_THAT(page, HasSubstr("\n.TP\n" + command + "\n")) << Page(path);
  }
}

TEST_F(Pages, AreNamedAndTellTheExitCodesOfSpex) {
  for (const auto& [path, help] : *help_) {
    const std::string page = ReadBytes(Page(path));
    EXPECT_THAT(page, HasSubstr("\n.SH NAME\n" + absl::StrJoin(path, "-") + " \\- "));
    EXPECT_THAT(page, HasSubstr("\n.SH SYNOPSIS\n.B " + path[0] + "\n"));
    if (path[0] == "spex") {
      EXPECT_THAT(page, HasSubstr("Exit codes: 0 done;")) << Page(path);
    }
  }
}

TEST_F(Pages, AreGoodInTheEyesOfMandoc) {
  if (Missing("mandoc")) GTEST_SKIP() << "mandoc is not installed";
  std::set<std::string> pages;
  for (const auto& [path, help] : *help_) pages.insert(Page(path));
  for (const std::string& page : pages) {
    EXPECT_THAT(RunCommand({"mandoc", "-Tlint", "-Wwarning", page}), ExitsWith(0, IsEmpty()));
    EXPECT_THAT(RunCommand({"mandoc", "-Thtml", page}).output, HasSubstr("<b>--help</b>"));
  }
}

TEST_F(Pages, OfTheSecondNameAreTheFirsts) {
  EXPECT_EQ(ReadBytes(*tree_ / "share/man/man1/spexd-extract.1"), ".so man1/spex.1\n");
}

// Tests the generated files, because this build may lack the Python package.
TEST_F(Reference, OfThePythonScriptHasEveryFlagThatItsSourcesName) {
  const std::string made = BuildFolder() + "/reference/python/", script = "spexd-extract-spectra";
  const std::string page = ReadBytes(made + "man/" + script + ".1"), zsh = ReadBytes(made + "zsh/_" + script),
                    fish = ReadBytes(made + "fish/" + script + ".fish");
  const std::string source = ReadBytes(SourceFolder() + "/python/spexd/desispec/_arguments.py");
  const Words offered = BashOffersOf(made + "bash/" + script, {script, "--"});
  const std::regex flag("\"(--[a-z-]+)\"");
  const bool has_pages = !Missing("help2man");
  int flags = 0;
  for (std::sregex_iterator found(source.begin(), source.end(), flag), end; found != end; ++found, ++flags) {
    const std::string name = (*found)[1];
    if (has_pages) {
      EXPECT_THAT(page, HasSubstr(Bold(name)));
    }
    EXPECT_THAT(offered, Contains(name));
    EXPECT_THAT(zsh, HasSubstr("'*" + name + "["));
    EXPECT_THAT(fish, HasSubstr(" -l " + name.substr(2) + " "));
  }
  EXPECT_GT(flags, 20);
  if (!has_pages || Missing("mandoc")) GTEST_SKIP() << "help2man or mandoc is not installed";
  EXPECT_THAT(RunCommand({"mandoc", "-Tlint", "-Wwarning", made + "man/" + script + ".1"}).output, IsEmpty());
}

TEST_F(Pages, AreGoodInTheEyesOfGroff) {
  if (Missing("groff")) GTEST_SKIP() << "groff is not installed";
  Words command = {"groff", "-man", "-Tutf8", "-ww", "-z"};
  for (const auto& [path, help] : *help_) command.push_back(Page(path));
  EXPECT_THAT(RunCommand(command), ExitsWith(0, IsEmpty()));
}

TEST_F(Reference, BashCompletesEveryFlagAndCommand) {
  for (const auto& [path, help] : *help_) {
    Words flags = path, commands = path;
    flags.push_back("-");
    commands.push_back("");
    EXPECT_THAT(BashOffers(flags), IsSupersetOf(help.flags)) << absl::StrJoin(path, " ");
    EXPECT_THAT(BashOffers(commands), ::testing::UnorderedElementsAreArray(help.commands))
        << absl::StrJoin(path, " ");
  }
}

TEST_F(Reference, BashCompletesAsTheProgramParses) {
  EXPECT_THAT(BashOffers({"spex", "plot", "--mod"}), ElementsAre("--model"));
  EXPECT_THAT(BashOffers({"spex", "-i", "a.fits", "--barycentric"}), ElementsAre("--barycentric-correction"));
  EXPECT_THAT(BashOffers({"spex", "psf", "u"}), ElementsAre("unload"));
  EXPECT_THAT(BashOffers({"spex", "--device", "cu"}), ElementsAre("cuda"));
  EXPECT_THAT(BashOffers({"spex", "-o", "plot", "--mod"}), ElementsAre("--model", "--model-dir"));
  EXPECT_THAT(BashOffers({"spexd", "--max-queued-j"}), ElementsAre("--max-queued-jobs"));
  EXPECT_THAT(BashOffers({"spexd", "--max-streams-per"}),
              UnorderedElementsAre("--max-streams-per-peer", "--max-streams-per-connection"));
  // Unknown values are files, which bash itself completes.
  EXPECT_THAT(BashOffers({"spex", "plot", "--image", "pre"}), IsEmpty());
  // Bash looks for the completion of the second name in a file of that name.
  EXPECT_THAT(BashOffers({"spexd-extract", "--barycentric"}), ElementsAre("--barycentric-correction"));
}

TEST_F(Reference, ZshAndFishNameEveryFlag) {
  for (const auto& [path, help] : *help_) {
    const std::string zsh = ReadBytes(Completion("zsh", path[0])),
                      fish = ReadBytes(Completion("fish", path[0]));
    for (const std::string& flag : help.flags) {
      EXPECT_THAT(zsh, HasSubstr("'*" + flag + "["));
      EXPECT_THAT(fish,
                  HasSubstr(flag[1] == '-' ? " -l " + flag.substr(2) + " " : " -s " + flag.substr(1) + " "));
    }
  }
}

TEST_F(Reference, ZshTakesItsCompletion) {
  if (Missing("zsh")) GTEST_SKIP() << "zsh is not installed";
  for (const char* program : {"spex", "spexd"}) {
    EXPECT_THAT(RunCommand({"zsh", "-n", Completion("zsh", program)}), ExitsWith(0, IsEmpty()));
  }
}

TEST_F(Reference, FishCompletes) {
  if (Missing("fish")) GTEST_SKIP() << "fish is not installed";
  const auto offers = [](const std::string& line) {
    return RunCommand({"env", "HOME=" + tree_->folder(), "fish", "--no-config", "-c",
                       absl::StrCat("source ", Completion("fish", "spex"), "; complete -C '", line, "'")})
        .output;
  };
  EXPECT_THAT(offers("spex plot --mod"), HasSubstr("--model"));
  EXPECT_THAT(offers("spex psf "), HasSubstr("unload"));
  EXPECT_THAT(offers("spex --device "), HasSubstr("cuda"));
  EXPECT_THAT(offers("spexd-extract --bary"), HasSubstr("--barycentric-correction"));
}

}  // namespace
}  // namespace spexd::testing
