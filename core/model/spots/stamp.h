// The pixels that a spot covers, and its position in them. Every spot model gives the size of its stamps.
// Plans and engines know nothing else of a spot's shape.
#ifndef SPEXD_CORE_MODEL_SPOTS_STAMP_H_
#define SPEXD_CORE_MODEL_SPOTS_STAMP_H_

#include <cmath>

#include "core/base/host_device.h"

namespace spexd {

inline constexpr int kMaxHalfSpot = 31;
inline constexpr int kMaxStampSide = 2 * kMaxHalfSpot + 1;

// A stamp's pixels along one axis.
struct StampAxis {
  int size = 0;     // pixels, 1 to kMaxStampSide
  int middle = 0;   // the pixel at or beside the spot's centre, counted from the first
  double lead = 0;  // in [0, 1); the first pixel is floor(centre - middle + lead)

  friend bool operator==(const StampAxis&, const StampAxis&) = default;
};

struct Stamp {
  StampAxis x, y;

  int pixels() const { return x.size * y.size; }
  friend bool operator==(const Stamp&, const Stamp&) = default;
};

// An axis with `half` pixels on each side of the one that holds the centre.
SPEXD_HOST_DEVICE inline StampAxis CentredAxis(int half) { return {2 * half + 1, half, 0.5}; }

// The first pixel of a spot centred at `centre` (integer coordinates are pixel centres).
SPEXD_HOST_DEVICE inline double FirstPixel(double centre, const StampAxis& axis) {
  return std::floor(centre - axis.middle + axis.lead);
}

// The position of a spot along one axis.
struct SpotPosition {
  int first;      // its first pixel, which may lie off the CCD
  double offset;  // its centre relative to its middle pixel, in [-lead, 1 - lead]
};

// The position of a spot centred at `centre`. An extrapolated trace may leave the range of integers, so the
// centre is limited to 1e6 pixels: so far off any CCD, its value does not matter.
SPEXD_HOST_DEVICE inline SpotPosition LocateSpot(double centre, const StampAxis& axis) {
  constexpr double kFarAway = 1e6;
  const double near = !(centre < kFarAway) ? kFarAway : centre < -kFarAway ? -kFarAway : centre;
  const double corner = FirstPixel(near, axis);
  return {static_cast<int>(corner), near - (corner + axis.middle)};
}

// The factor that scales a spot to sum 1. It is 0 unless the sum is positive and finite and its inverse does
// not overflow, as where an extrapolated width is not positive. Such a spot is empty, and its bin is NODATA.
SPEXD_HOST_DEVICE inline double SpotScale(double sum) {
  const double scale = 1 / sum;
  return sum > 0 && std::isfinite(scale) ? scale : 0;
}

}  // namespace spexd

#endif  // SPEXD_CORE_MODEL_SPOTS_STAMP_H_
