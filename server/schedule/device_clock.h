// A clock of the device-seconds of jobs that run at once. While n jobs share d < n devices, each counts d/n
// of the time; otherwise each counts all of it. A job's device-seconds therefore hardly depend on other jobs,
// and the sum over all jobs is the time that the devices are busy.
#ifndef SPEXD_SERVER_SCHEDULE_DEVICE_CLOCK_H_
#define SPEXD_SERVER_SCHEDULE_DEVICE_CLOCK_H_

#include <algorithm>
#include <chrono>

namespace spexd {

class DeviceClock {
 public:
  using Time = std::chrono::steady_clock::time_point;

  // Returns the device-seconds of a job that has run since the clock began. Times never go back.
  double At(Time now) const {
    if (running_ == 0 || now <= at_) return seconds_;
    const double rate = std::min(1.0, static_cast<double>(devices_) / running_);
    return seconds_ + rate * std::chrono::duration<double>(now - at_).count();
  }
  int devices() const { return devices_; }

  // Sets the number of devices from `now` on. REQUIRES: devices >= 1.
  void SetDevices(int devices, Time now) {
    Advance(now);
    devices_ = devices;
  }
  void AddRunning(int change, Time now) {
    Advance(now);
    running_ += change;
  }

 private:
  void Advance(Time now) {
    seconds_ = At(now);
    at_ = std::max(at_, now);
  }

  int devices_ = 1;
  int running_ = 0;
  double seconds_ = 0;
  Time at_ = Time::min();
};

}  // namespace spexd

#endif  // SPEXD_SERVER_SCHEDULE_DEVICE_CLOCK_H_
