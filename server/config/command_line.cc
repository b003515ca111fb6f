#include "server/config/command_line.h"

#include "absl/strings/str_cat.h"
#include "core/base/build_version.h"

namespace spexd {
namespace {

std::string DefaultOf(const Option& option) {
  const std::vector<std::string> texts = OptionTexts(option, ServerOptions());
  return texts.empty() ? "" : texts[0];
}

std::string HelpOf(const Option& option) {
  std::string help = option.help;
  const std::string standard = DefaultOf(option), limits = option.limits();
  if (!option.is_switch() && !standard.empty()) absl::StrAppend(&help, " [", standard, "]");
  if (!limits.empty()) absl::StrAppend(&help, " (", limits, ")");
  return help;
}

}  // namespace

CommandLine::CommandLine(const std::vector<Option>& table)
    : app{"spexd: extracts spectra from CCD frames, as a gRPC service", "spexd"}, texts_(table.size()) {
  app.set_version_flag("--version", "spexd " + BuildVersion());
  app.add_option(
      "--config", config,
      "file with \"key = value\" lines; the environment (SPEXD_LISTEN for --listen) goes before it, "
      "and flags before both");
  app.add_flag("--check-config", check, "check the options and the files that they name, then end");
  app.add_option("--check-jobs", check_jobs,
                 "folder of --jobs-dir that no server uses: check its jobs, name the damaged ones, then end")
      ->type_name("DIR");
  app.add_flag("--print-config", print, "print all options as a file for --config, then end");
  for (size_t k = 0; k < table.size(); ++k) {
    const Option& option = table[k];
    flags.push_back(option.is_switch() ? app.add_flag(option.flag(), on_, HelpOf(option))
                                       : app.add_option(option.flag(), texts_[k], HelpOf(option)));
    if (!option.is_switch() && !option.is_list()) flags.back()->expected(1);
  }
}

}  // namespace spexd
