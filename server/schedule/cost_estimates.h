// Device-seconds that a job will take in its slot: learned from those that jobs took.
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
  // Before any job has ended.
  static constexpr double kFirstGuess = 5;
  // A guess counts as learned once it is from so many jobs.
  static constexpr int kEnough = 3;
  // Kinds that are remembered; beyond that the one that was seen longest ago is forgotten.
  static constexpr size_t kMaxKinds = 4096;
  // Jobs for which the engine expects less are mostly not its work: they tell nothing of longer ones.
  static constexpr double kMinTelling = 0.01;

  struct Guess {
    double seconds = kFirstGuess;
    bool learned = false;  // from several jobs of this kind
  };

  // What jobs of this kind and identity took; if there were none, those of this kind; else all.
  Guess Of(const std::string& identity, const std::string& kind) const;
  // The engine's own estimate, which knows more of the job, times what jobs took of such seconds on
  // average.
  double Corrected(double engine_seconds) const { return engine_seconds * of_engine_.factor(); }
  // A job ended well. `engine_seconds`: the engine's estimate, 0 if there was none.
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
