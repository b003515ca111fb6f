// The table of spexd's options: name, value, limits and meaning of each. Flags, environment, configuration
// files, --help, --print-config and the documentation follow from it.
#ifndef SPEXD_SERVER_CONFIG_OPTION_TABLE_H_
#define SPEXD_SERVER_CONFIG_OPTION_TABLE_H_

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "absl/status/status.h"
#include "server/config/options.h"

namespace spexd {

// Pointer to an option's value. int64_t: a count of bytes, which may be written with a unit ("2GiB").
using OptionValue = std::variant<std::string*, std::vector<std::string>*, std::vector<int>*, int*, int64_t*,
                                 double*, bool*, LogLevel*, LogFormat*>;

struct Option {
  std::string name;        // "max-queued-jobs": the flag without dashes, the key in files
  std::string value_name;  // kind or unit of the value in --help ("SECONDS"); "" for a switch
  OptionValue (*value)(ServerOptions* of);  // the value in `of`
  double least = 0, most = 0;               // limits of a number
  std::string help;
  bool common = false;      // shown by --help; --help-all shows all options
  bool reloadable = false;  // takes effect on SIGHUP
  std::string group = "";   // heading in --help

  std::string flag() const;         // "--max-queued-jobs"
  std::string environment() const;  // "SPEXD_MAX_QUEUED_JOBS"
  std::string limits() const;       // "0 to 2000"; "" for texts
  bool is_switch() const;           // true or false: a flag without a value
  bool is_list() const;             // has several values, in a file one per line
};

// All options, group by group, in the order of --help-all and of the documentation.
std::vector<Option> OptionTable();

// Sets the option from its texts: one, or any number for a list. InvalidArgument begins with `name`, which
// tells the user where the value was given, and names value and limit.
absl::Status SetOption(const Option& option, const std::string& name, const std::vector<std::string>& texts,
                       ServerOptions* options);

// The option's value as texts for SetOption.
std::vector<std::string> OptionTexts(const Option& option, const ServerOptions& options);

// InvalidArgument, beginning with `name`, if a number lies outside its limits.
absl::Status CheckLimits(const Option& option, const std::string& name, const ServerOptions& options);

}  // namespace spexd

#endif  // SPEXD_SERVER_CONFIG_OPTION_TABLE_H_
