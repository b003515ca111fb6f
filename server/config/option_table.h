// The one definition of each of spexd's options: its name, value, limits and meaning. Flags, environment,
// files,
// --help, --print-config and the documentation follow from it.
#ifndef SPEXD_SERVER_CONFIG_OPTION_TABLE_H_
#define SPEXD_SERVER_CONFIG_OPTION_TABLE_H_

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "absl/status/status.h"
#include "server/config/options.h"

namespace spexd {

// Where an option's value is kept. int64_t: a count of bytes, which may be written with a unit ("2GiB").
using OptionValue = std::variant<std::string*, std::vector<std::string>*, std::vector<int>*, int*, int64_t*,
                                 double*, bool*, LogLevel*, LogFormat*>;

struct Option {
  std::string name;  // "max-queued-jobs": the flag without its dashes, and the key in files
  OptionValue (*value)(ServerOptions* of);  // where `of` keeps it
  double least = 0, most = 0;               // of numbers
  std::string help;
  bool reloadable = false;  // takes effect on SIGHUP

  std::string flag() const;         // "--max-queued-jobs"
  std::string environment() const;  // "SPEXD_MAX_QUEUED_JOBS"
  std::string limits() const;       // "0 to 2000"; "" for texts
  bool is_switch() const;           // true or false: a flag without a value
  bool is_list() const;             // has several values, in a file a line each
};

// All options, in the order of the documentation.
std::vector<Option> OptionTable();

// Sets the option from its texts: one, or any number for a list. InvalidArgument begins with `name`, which
// tells the user where the value stands, and names value and limit.
absl::Status SetOption(const Option& option, const std::string& name, const std::vector<std::string>& texts,
                       ServerOptions* options);

// The option's value as SetOption takes it.
std::vector<std::string> OptionTexts(const Option& option, const ServerOptions& options);

// InvalidArgument if a number lies outside its limits, with `name` in front.
absl::Status CheckLimits(const Option& option, const std::string& name, const ServerOptions& options);

}  // namespace spexd

#endif  // SPEXD_SERVER_CONFIG_OPTION_TABLE_H_
