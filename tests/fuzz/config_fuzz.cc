// spexd's configuration: the input is a file; its lines "SPEXD_NAME=value" are the environment.
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "server/config/configuration.h"
#include "tests/fuzz/support/fuzz_check.h"
#include "tests/support/temp_folder.h"

namespace spexd::fuzz {
namespace {

struct Sources {
  std::string file;
  std::map<std::string, std::string> environment;
};

Sources SourcesOf(const std::string& input) {
  Sources sources;
  for (const absl::string_view line : absl::StrSplit(input, '\n')) {
    const std::pair<std::string, std::string> parts = absl::StrSplit(line, absl::MaxSplits('=', 1));
    if (absl::StartsWith(line, "SPEXD_") && parts.first != "SPEXD_CONFIG") {
      // As in a configuration file, the value has no blanks around it and no NUL in it.
      const std::string value(absl::StripAsciiWhitespace(parts.second));
      sources.environment[parts.first] = value.substr(0, value.find('\0'));
    } else {
      absl::StrAppend(&sources.file, line, "\n");
    }
  }
  return sources;
}

ParsedCommandLine Parse(const std::string& path, const std::map<std::string, std::string>& environment,
                        bool print) {
  std::vector<const char*> arguments = {"spexd", "--config", path.c_str()};
  if (print) arguments.push_back("--print-config");
  return ParseCommandLine(static_cast<int>(arguments.size()), arguments.data(),
                          [&](const char* name) -> const char* {
                            const auto found = environment.find(name);
                            return found == environment.end() ? nullptr : found->second.c_str();
                          });
}

void Fuzz(const std::string& input) {
  static const testing::TempFolder folder;
  const std::string path = folder / "spexd.conf", printed = folder / "printed.conf";
  const Sources sources = SourcesOf(input);
  testing::WriteBytes(path, sources.file);
  const ParsedCommandLine parsed = Parse(path, sources.environment, false);
  if (parsed.exit_code.has_value()) {
    Require(*parsed.exit_code == 2 && absl::EndsWith(parsed.text, "\n"), "a mistake ends spexd");
    RequireGoodError(absl::InvalidArgumentError(absl::StripSuffix(parsed.text, "\n")), {.utf8 = true});
    return;
  }
  const ParsedCommandLine text = Parse(path, sources.environment, true);
  Require(text.exit_code == 0, "a good configuration is printed");
  testing::WriteBytes(printed, text.text);
  const ParsedCommandLine again = Parse(printed, {}, false);
  Require(!again.exit_code.has_value(), absl::StrCat("what was printed is read: ", again.text));
  Require(NeedRestart(parsed.options, again.options).empty() &&
              parsed.options.log_level == again.options.log_level &&
              parsed.options.identities == again.options.identities,
          "what was printed says the same");
}

}  // namespace
}  // namespace spexd::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  spexd::fuzz::Fuzz(std::string(reinterpret_cast<const char*>(data), size));
  return 0;
}
