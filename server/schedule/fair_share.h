// What an identity has used of the devices, by its weight.
#ifndef SPEXD_SERVER_SCHEDULE_FAIR_SHARE_H_
#define SPEXD_SERVER_SCHEDULE_FAIR_SHARE_H_

#include <algorithm>
#include <chrono>
#include <cmath>

namespace spexd {

class FairShare {
 public:
  using Time = std::chrono::steady_clock::time_point;

  // Use is forgotten by half in this time.
  static constexpr double kHalfLifeSeconds = 600;

  // Device-seconds used, decayed and divided by the weight: the identity with the least goes first.
  double Level(Time now) const { return Used(now) / weight_; }
  // `seconds` may be negative: a correction.
  void Charge(double seconds, Time now) { Set(Used(now) + seconds, now); }
  void RaiseTo(double level, Time now) { Set(std::max(Used(now), level * weight_), now); }

  double weight() const { return weight_; }
  void set_weight(double weight) { weight_ = weight; }

 private:
  double Used(Time now) const {
    const double age = std::chrono::duration<double>(now - at_).count();
    return used_ == 0 || age <= 0 ? used_ : used_ * std::exp2(-age / kHalfLifeSeconds);
  }
  void Set(double used, Time now) {
    used_ = std::max(0.0, used);
    at_ = now;
  }

  double weight_ = 1;
  double used_ = 0;
  Time at_;
};

}  // namespace spexd

#endif  // SPEXD_SERVER_SCHEDULE_FAIR_SHARE_H_
