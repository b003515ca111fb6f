// Velocities in km/s.
#ifndef SPEXD_CORE_ANALYSIS_VELOCITY_UNITS_H_
#define SPEXD_CORE_ANALYSIS_VELOCITY_UNITS_H_

namespace spexd {

inline constexpr double kLightSpeed = 299792.458;  // km/s

}  // namespace spexd

#endif  // SPEXD_CORE_ANALYSIS_VELOCITY_UNITS_H_
