// Estimates of the device-seconds that a job will take in its slot, learned from earlier jobs.
#ifndef SPEXD_SERVER_SCHEDULE_COST_ESTIMATES_H_
#define SPEXD_SERVER_SCHEDULE_COST_ESTIMATES_H_

#include <cstdint>
#include <map>
#include <string>
#include <utility>

#include "core/extract/correction.h"

namespace spexd {

class CostEstimates {
 public:
  // The guess before any job has ended.
  static constexpr double kFirstGuess = 5;
  // The number of jobs of a kind from which a guess counts as learned.
  static constexpr int kEnough = 3;
  // The number of kinds that are remembered. Beyond it, the least recently used one is forgotten.
  static constexpr size_t kMaxKinds = 4096;
  // Jobs for which the engine estimates less do not correct its estimates, since other work dominates them.
  static constexpr double kMinTelling = 0.01;

  struct Guess {
    double seconds = kFirstGuess;
    bool learned = false;  // from kEnough jobs of the kind
  };

  // Returns the mean of the last jobs of this kind and identity; if there are none, of the kind; if there are
  // none, of all jobs.
  Guess Of(const std::string& identity, const std::string& kind) const;
  // Returns the engine's estimate times the mean ratio of the time that jobs took to that estimate.
  double Corrected(double engine_seconds) const { return engine_seconds * of_engine_.factor(); }
  // Learns from a job that ended well. `engine_seconds`: the engine's estimate; 0: none. `taken`: the time
  // that the job took.
  void Learn(const std::string& identity, const std::string& kind, double engine_seconds, double taken);

 private:
  struct Mean {
    double seconds = 1;
    int count = 0;
    uint64_t used = 0;
    void Add(double value);
  };
  using Key = std::pair<std::string, std::string>;  // identity ("": any) and kind

  void LearnKind(Key key, double taken);

  std::map<Key, Mean> kinds_;
  Mean all_;
  Correction of_engine_;
  uint64_t clock_ = 0;
};

}  // namespace spexd

#endif  // SPEXD_SERVER_SCHEDULE_COST_ESTIMATES_H_
