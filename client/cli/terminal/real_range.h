// The limits of flags that are real numbers.
#ifndef SPEXD_CLIENT_CLI_TERMINAL_REAL_RANGE_H_
#define SPEXD_CLIENT_CLI_TERMINAL_REAL_RANGE_H_

#include <CLI/CLI.hpp>
#include <string>

#include "absl/strings/numbers.h"
#include "absl/strings/str_format.h"
#include "core/base/text.h"

namespace spexd::cli {

// Replaces CLI::Range and CLI::NonNegativeNumber, which accept "nan". The help text is the same.
inline CLI::Validator RealRange(double min, double max) {
  const auto refuse = [min, max](const std::string& text) -> std::string {
    double number = 0;
    if (absl::SimpleAtod(text, &number) && number >= min && number <= max) return "";
    return absl::StrFormat("is %s, must be a number from %.15g to %.15g", ForMessage(text), min, max);
  };
  return CLI::Validator(refuse, CLI::Range(min, max).get_description());
}

}  // namespace spexd::cli

#endif  // SPEXD_CLIENT_CLI_TERMINAL_REAL_RANGE_H_
