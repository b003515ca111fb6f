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
  app.set_help_flag("-h,--help", "Print the most common flags and exit");
  app.set_help_all_flag("--help-all", "Print all flags and exit");
  app.set_version_flag("--version", "spexd " + BuildVersion(), "Print the version and exit");
  app.add_option("--config", config,
                 "File with \"key = value\" lines. The environment (SPEXD_LISTEN for --listen) overrides it, "
                 "and flags override both")
      ->type_name("FILE");
  app.add_flag("--check-config", check, "Check the options and the files that they name, and exit");
  app.add_option(
         "--check-jobs", check_jobs,
         "Check the detached jobs in a folder of --jobs-dir that no server uses, name the damaged ones, "
         "and exit")
      ->type_name("DIR");
  app.add_flag("--print-config", print, "Print all options as a file for --config and exit");
  app.footer(
      "[...] is the default, (... to ...) the limits. BYTES may have a unit, such as 2GiB.\n"
      "`spexd --help-all` prints all flags.");
  for (size_t k = 0; k < table.size(); ++k) {
    const Option& option = table[k];
    flags.push_back(option.is_switch() ? app.add_flag(option.flag(), on_, HelpOf(option))
                                       : app.add_option(option.flag(), texts_[k], HelpOf(option)));
    flags.back()->group(option.group);
    if (!option.is_switch()) flags.back()->type_name(option.value_name);
    if (!option.is_switch() && !option.is_list()) flags.back()->expected(1);
    if (!option.common) rare_.push_back(flags.back());
  }
}

std::string CommandLine::ShortHelp() {
  for (CLI::Option* flag : rare_) flag->group("");  // CLI11 does not print flags without a group
  return app.help();
}

}  // namespace spexd
