#include <cstdio>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "client/cli/commands/commands.h"
#include "client/cli/terminal/exit_code.h"
#include "client/compare/compare.h"
#include "core/base/status_macros.h"
#include "core/fits/readers.h"

namespace spexd::cli {
namespace {

struct CompareCommandOptions {
  std::string a, b, truth;
  std::optional<double> max_pull, max_ivar, max_resolution;
  std::optional<int64_t> max_mask_differences;
  std::vector<std::string> min_within;
  std::string truth_sigma_range;
};

// Prints the verdict on each limit and remembers whether one was exceeded.
class Verdicts {
 public:
  void Check(const std::string& what, bool good) {
    std::printf("  %-4s  %s\n", good ? "ok" : "FAIL", what.c_str());
    good_ = good_ && good;
  }
  int exit_code() const { return good_ ? kOk : kDifferent; }

 private:
  bool good_ = true;
};

absl::StatusOr<std::pair<double, double>> ParsePair(const std::string& flag, const std::string& text) {
  const std::vector<std::string> parts = absl::StrSplit(text, ',');
  std::pair<double, double> pair;
  if (parts.size() == 2 && absl::SimpleAtod(parts[0], &pair.first) &&
      absl::SimpleAtod(parts[1], &pair.second)) {
    return pair;
  }
  return absl::InvalidArgumentError(
      absl::StrFormat("%s \"%s\": expected two numbers with a comma between them", flag, text));
}

absl::StatusOr<Frame> LoadFrame(const std::string& path) {
  SPEXD_ASSIGN_OR_RETURN(const Source source, Source::FromFile(path));
  return ReadFrame(source);
}

absl::StatusOr<int> CompareTwo(const CompareCommandOptions& options) {
  std::vector<std::pair<double, double>> within;
  for (const std::string& text : options.min_within) {
    SPEXD_ASSIGN_OR_RETURN(const auto pair, ParsePair("--min-within", text));
    within.push_back(pair);
  }
  SPEXD_ASSIGN_OR_RETURN(const Frame a, LoadFrame(options.a));
  SPEXD_ASSIGN_OR_RETURN(const Frame b, LoadFrame(options.b));
  SPEXD_ASSIGN_OR_RETURN(const FrameDifference difference, CompareFrames(a, b));
  std::printf("%s\n%s\n", options.a.c_str(), options.b.c_str());
  std::printf("  fibres %d:%d, %lld of %lld bins with MASK 0 in both, MASK differs in %lld\n",
              difference.fibres.first, difference.fibres.end(), static_cast<long long>(difference.compared),
              static_cast<long long>(difference.bins), static_cast<long long>(difference.mask_differs));
  std::printf("  pull: rms %.3g, largest %.3g; below 1e-4 %.4f %%, below 0.01 %.4f %%, below 0.05 %.4f %%\n",
              difference.rms_pull, difference.max_pull(), 100 * difference.Within(1e-4),
              100 * difference.Within(0.01), 100 * difference.Within(0.05));
  std::printf("  sqrt(ivar): largest relative difference %.3g\n", difference.max_sqrt_ivar);
  std::printf("  resolution: largest difference %.3g\n", difference.max_resolution);

  Verdicts verdicts;
  if (difference.compared == 0) verdicts.Check("no bin has MASK 0 in both", false);
  if (options.max_pull) {
    verdicts.Check(absl::StrFormat("largest pull %g <= %g", difference.max_pull(), *options.max_pull),
                   difference.max_pull() <= *options.max_pull);
  }
  if (options.max_ivar) {
    verdicts.Check(absl::StrFormat("sqrt(ivar) %g <= %g", difference.max_sqrt_ivar, *options.max_ivar),
                   difference.max_sqrt_ivar <= *options.max_ivar);
  }
  if (options.max_resolution) {
    verdicts.Check(absl::StrFormat("resolution %g <= %g", difference.max_resolution, *options.max_resolution),
                   difference.max_resolution <= *options.max_resolution);
  }
  if (options.max_mask_differences) {
    verdicts.Check(absl::StrFormat("MASK differs in %d <= %d bins", difference.mask_differs,
                                   *options.max_mask_differences),
                   difference.mask_differs <= *options.max_mask_differences);
  }
  for (const auto& [pull, fraction] : within) {
    verdicts.Check(absl::StrFormat("pulls below %g: %.6f >= %g", pull, difference.Within(pull), fraction),
                   difference.Within(pull) >= fraction);
  }
  return verdicts.exit_code();
}

absl::StatusOr<int> CompareWithTruth(const CompareCommandOptions& options) {
  std::optional<std::pair<double, double>> range;
  if (!options.truth_sigma_range.empty()) {
    SPEXD_ASSIGN_OR_RETURN(range, ParsePair("--truth-sigma-range", options.truth_sigma_range));
  }
  SPEXD_ASSIGN_OR_RETURN(const Frame frame, LoadFrame(options.a));
  SPEXD_ASSIGN_OR_RETURN(const Source source, Source::FromFile(options.truth));
  SPEXD_ASSIGN_OR_RETURN(const Truth truth, ReadTruth(source));
  SPEXD_ASSIGN_OR_RETURN(const TruthDifference difference, CompareTruth(frame, truth));
  std::printf("%s against the truth in %s\n", options.a.c_str(), options.truth.c_str());
  const auto number = [](int64_t bins) { return static_cast<long long>(bins); };
  std::printf("  %d fibres, %lld bins; left out %lld: MASK %lld, chi2pix %lld, ends of the grid %lld\n",
              difference.fibres, number(difference.compared), number(difference.left_out()),
              number(difference.masked), number(difference.bad_fit), number(difference.at_the_ends));
  if (difference.other_fibres > 0)
    std::printf("  %d fibres of the frame are not in the truth\n", difference.other_fibres);
  std::printf("  pull: mean %+.4f, median %+.4f, sigma %.4f, robust sigma %.4f, beyond 5 sigma %.4f %%\n",
              difference.mean, difference.median, difference.sigma, difference.robust_sigma,
              100 * difference.beyond_5);
  Verdicts verdicts;
  if (range.has_value()) {
    verdicts.Check(absl::StrFormat("%g <= robust sigma %.4f <= %g", range->first, difference.robust_sigma,
                                   range->second),
                   difference.robust_sigma >= range->first && difference.robust_sigma <= range->second);
  }
  return verdicts.exit_code();
}

int RunCompare(const CompareCommandOptions& options) {
  if (options.truth.empty() == options.b.empty()) {
    return Fail(absl::InvalidArgumentError("compare takes a second frame or --truth, one of the two"));
  }
  const absl::StatusOr<int> code = options.truth.empty() ? CompareTwo(options) : CompareWithTruth(options);
  return code.ok() ? *code : Fail(code.status());
}

}  // namespace

void AddCompare(CLI::App* app, Action* action) {
  auto options = std::make_shared<CompareCommandOptions>();
  CompareCommandOptions& o = *options;
  CLI::App* command = app->add_subcommand(
      "compare", "Compare two frames, or a frame with simulated truth. Exit code 1: beyond a limit");
  command->add_option("a", o.a, "Frame to compare")->type_name("FILE")->required();
  command->add_option("b", o.b, "Reference frame. Leave it out with --truth")->type_name("FILE");
  command->add_option("--max-pull", o.max_pull, "Largest allowed pull: |flux A - flux B| sqrt(ivar B)");
  command->add_option("--max-ivar", o.max_ivar, "Largest allowed relative difference of sqrt(ivar)");
  command->add_option("--max-resolution", o.max_resolution,
                      "Largest allowed difference of elements of the resolution");
  command->add_option("--max-mask-differences", o.max_mask_differences,
                      "Largest allowed number of bins whose MASK differs");
  command
      ->add_option("--min-within", o.min_within,
                   "Least allowed fraction of pulls below PULL; may be repeated")
      ->type_name("PULL,FRACTION")
      ->take_all();
  command
      ->add_option("--truth", o.truth,
                   "File of simulated truth to compare with, instead of a reference frame")
      ->type_name("FILE");
  command
      ->add_option("--truth-sigma-range", o.truth_sigma_range,
                   "Allowed range of the robust standard deviation of the pulls")
      ->type_name("LOW,HIGH");
  command->callback([options, action] { *action = [options] { return RunCompare(*options); }; });
}

}  // namespace spexd::cli
