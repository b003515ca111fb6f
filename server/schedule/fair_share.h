// The use of the devices by an identity, relative to its weight.
#ifndef SPEXD_SERVER_SCHEDULE_FAIR_SHARE_H_
#define SPEXD_SERVER_SCHEDULE_FAIR_SHARE_H_

#include <algorithm>
#include <chrono>
#include <cmath>

namespace spexd {

class FairShare {
 public:
  using Time = std::chrono::steady_clock::time_point;

  // The time in which a use decays by half.
  static constexpr double kHalfLifeSeconds = 600;

  // Returns the decayed device-seconds divided by the weight. The identity with the lowest level goes first.
  double Level(Time now) const { return Used(now) / weight_; }
  // Replaces the charge `before`, made at `since`, by `seconds`. REQUIRES: both are finite, because NaN or
  // infinity would destroy the record of all earlier use.
  void Charge(double seconds, double before, Time since, Time now) {
    Set(Used(now) - Decayed(before, since, now) + seconds, now);
  }
  void RaiseTo(double level, Time now) { Set(std::max(Used(now), level * weight_), now); }

  double weight() const { return weight_; }
  void set_weight(double weight) { weight_ = weight; }

 private:
  static double Decayed(double used, Time since, Time now) {
    const double age = std::chrono::duration<double>(now - since).count();
    return used == 0 || age <= 0 ? used : used * std::exp2(-age / kHalfLifeSeconds);
  }
  double Used(Time now) const { return Decayed(used_, at_, now); }
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
