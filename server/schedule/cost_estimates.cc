#include "server/schedule/cost_estimates.h"

#include <algorithm>

namespace spexd {
namespace {

// The weight of the last job in a mean. It is large because jobs change with the night and the settings.
constexpr double kWeightOfTheLast = 0.2;
// The key for jobs of any identity. No identity has this name, because names have no blanks.
constexpr char kAnyIdentity[] = " any";

}  // namespace

void CostEstimates::Mean::Add(double value) {
  const double weight = std::max(kWeightOfTheLast, 1.0 / (count + 1));
  seconds += weight * (value - seconds);
  ++count;
}

CostEstimates::Guess CostEstimates::Of(const std::string& identity, const std::string& kind) const {
  for (const std::string& whose : {identity, std::string(kAnyIdentity)}) {
    const auto found = kinds_.find({whose, kind});
    if (found != kinds_.end()) return {found->second.seconds, found->second.count >= kEnough};
  }
  return {all_.count > 0 ? all_.seconds : kFirstGuess, false};
}

void CostEstimates::Learn(const std::string& identity, const std::string& kind, double engine_seconds,
                          double taken) {
  all_.Add(taken);
  if (engine_seconds >= kMinTelling) of_engine_.Learn(engine_seconds, taken);
  LearnKind({identity, kind}, taken);
  LearnKind({kAnyIdentity, kind}, taken);
}

void CostEstimates::LearnKind(Key key, double taken) {
  if (kinds_.size() >= kMaxKinds && kinds_.count(key) == 0) {
    kinds_.erase(std::min_element(kinds_.begin(), kinds_.end(), [](const auto& a, const auto& b) {
      return a.second.used < b.second.used;
    }));
  }
  Mean& mean = kinds_[std::move(key)];
  mean.Add(taken);
  mean.used = ++clock_;
}

}  // namespace spexd
