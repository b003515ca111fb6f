// The formula of a sampled spot, defined once for all engines: a weighted sum of images, shifted to the
// spot's position, clipped at 0 and scaled to sum 1.
//
// Images are stored as stamps of CCD pixels, one for each of `phases` x `phases` positions of a spot within a
// pixel. For a position between those, either the four nearest stamps are interpolated linearly, or the sum
// of images is shifted by a damped sinc, as in specter (specter.util.sincshift).
#ifndef SPEXD_CORE_MODEL_SPOTS_SAMPLED_FORMULA_H_
#define SPEXD_CORE_MODEL_SPOTS_SAMPLED_FORMULA_H_

#include <cmath>
#include <cstdint>

#include "core/base/host_device.h"
#include "core/model/spots/stamp.h"

namespace spexd {

inline constexpr int kMaxPhases = 64;
inline constexpr int kMaxImagePowers = 64;

enum class SubpixelShift : int32_t { kLinear, kSinc };

// The values of a fibre that determine the weights of images. A grid's images stand at positions on the slit
// and wavelengths. They are interpolated linearly, and extrapolated beyond the ends. A group of polynomials
// has an image for each power x^a y^b of the spot's position on the CCD.
struct SampledFibre {
  double position = 0;  // position on the slit
  int32_t group = 0;
  int32_t is_empty = 0;                             // 1: the fibre has no spots
  double x0 = 0, x_scale = 0, y0 = 0, y_scale = 0;  // x = x_scale (column - x0), y likewise
};
struct ImagePowers {
  int32_t x = 0, y = 0;
};

// Sizes of a sampled model: plain numbers, which kernels get by value.
struct SampledLayout {
  Stamp stamp;
  SubpixelShift shift = SubpixelShift::kLinear;
  int32_t phases = 1;       // stored positions within a pixel along each axis
  int32_t images = 0;       // a grid: positions x wavelengths; polynomials: groups x powers
  int32_t positions = 0;    // number of a grid's positions
  int32_t wavelengths = 0;  // number of a grid's wavelengths
  int32_t powers = 0;       // number of powers of polynomials; 0: the images are a grid's

  // Number of stamps of an image along each axis. Linear interpolation also needs those of the position one
  // pixel on.
  SPEXD_HOST_DEVICE int stored_phases() const { return phases + (shift == SubpixelShift::kLinear); }
  SPEXD_HOST_DEVICE int64_t stamps() const { return int64_t{images} * stored_phases() * stored_phases(); }
  // Number of stamps whose weighted sum is a spot.
  SPEXD_HOST_DEVICE int terms() const {
    return (powers > 0 ? powers : 4) * (shift == SubpixelShift::kLinear ? 4 : 1);
  }
};
inline constexpr int kMaxSampledTerms = 4 * kMaxImagePowers;

// A model's arrays, in memory of the host or of a device.
struct SampledView {
  SampledLayout layout;
  const float* stamps = nullptr;         // [image, phase y, phase x, row, column]
  const SampledFibre* fibres = nullptr;  // [fibre]
  const double* positions = nullptr;     // ascending
  const double* wavelengths = nullptr;   // ascending, Angstrom
  const ImagePowers* powers = nullptr;
};

// Two neighbours in an ascending list of numbers, and the weight of the second.
struct Between {
  int low = 0, high = 0;
  double part = 0;

  SPEXD_HOST_DEVICE double Weight(int of_high) const { return of_high ? part : 1 - part; }
  SPEXD_HOST_DEVICE int Index(int of_high) const { return of_high ? high : low; }
};

// Finds the two numbers between which `value` lies. Values beyond the ends get the first or last two.
SPEXD_HOST_DEVICE inline Between FindBetween(const double* numbers, int count, double value) {
  if (count < 2) return {0, 0, 0};
  int low = 0, high = count - 1;
  while (high - low > 1) {
    const int middle = (low + high) / 2;
    (numbers[middle] < value ? low : high) = middle;
  }
  return {low, low + 1, (value - numbers[low]) / (numbers[low + 1] - numbers[low])};
}

// Finds the phases between which a spot lies. `part`: the part of a pixel, in [0, 1), by which the spot is
// beyond its first pixel.
SPEXD_HOST_DEVICE inline Between FindPhase(const SampledLayout& layout, double part) {
  const double at = part * layout.phases;
  int low = static_cast<int>(at);
  low = low < 0 ? 0 : low >= layout.phases ? layout.phases - 1 : low;
  return {low, low + 1, at - low};
}

// The place of a spot, which determines the weights of its stamps.
struct SampledPlace {
  Between position, wavelength;  // place among a grid's images
  double x = 0, y = 0;           // polynomials: the scaled position on the CCD
  int group = 0;
  bool is_empty = false;
  Between phase_x, phase_y;

  // The shift, in pixels, that a sinc applies.
  SPEXD_HOST_DEVICE double ShiftX(const SampledLayout& layout) const {
    return phase_x.part / layout.phases - layout.stamp.x.lead;
  }
  SPEXD_HOST_DEVICE double ShiftY(const SampledLayout& layout) const {
    return phase_y.part / layout.phases - layout.stamp.y.lead;
  }
};

SPEXD_HOST_DEVICE inline SampledPlace FindPlace(const SampledView& view, int fibre, double wave,
                                                const SpotPosition& x, const SpotPosition& y) {
  const SampledLayout& layout = view.layout;
  const SampledFibre& of = view.fibres[fibre];
  SampledPlace place;
  place.is_empty = of.is_empty != 0;
  if (layout.powers == 0) {
    place.position = FindBetween(view.positions, layout.positions, of.position);
    place.wavelength = FindBetween(view.wavelengths, layout.wavelengths, wave);
  } else {
    place.x = of.x_scale * (x.first + layout.stamp.x.middle + x.offset - of.x0);
    place.y = of.y_scale * (y.first + layout.stamp.y.middle + y.offset - of.y0);
    place.group = of.group;
  }
  place.phase_x = FindPhase(layout, x.offset + layout.stamp.x.lead);
  place.phase_y = FindPhase(layout, y.offset + layout.stamp.y.lead);
  return place;
}

SPEXD_HOST_DEVICE inline double IntegerPower(double base, int exponent) {
  double power = 1;
  for (int k = 0; k < exponent; ++k) power *= base;
  return power;
}

// One stamp of a spot's sum.
struct SampledTerm {
  int64_t stamp;  // the stamp's index
  double weight;
};

// Term k of a spot's sum. REQUIRES: 0 <= k < layout.terms().
SPEXD_HOST_DEVICE inline SampledTerm TermOf(const SampledView& view, const SampledPlace& place, int k) {
  const SampledLayout& layout = view.layout;
  const bool linear = layout.shift == SubpixelShift::kLinear;
  const int image = linear ? k / 4 : k, stored = layout.stored_phases();
  SampledTerm term;
  if (layout.powers == 0) {
    term.stamp = place.position.Index(image / 2) * layout.wavelengths + place.wavelength.Index(image % 2);
    term.weight = place.position.Weight(image / 2) * place.wavelength.Weight(image % 2);
  } else {
    term.stamp = place.group * layout.powers + image;
    term.weight = IntegerPower(place.x, view.powers[image].x) * IntegerPower(place.y, view.powers[image].y);
  }
  const int high_y = linear && k % 4 / 2, high_x = linear && k % 2;
  term.stamp = (term.stamp * stored + place.phase_y.Index(high_y)) * stored + place.phase_x.Index(high_x);
  if (place.is_empty) term.weight = 0;
  if (linear) term.weight *= place.phase_y.Weight(high_y) * place.phase_x.Weight(high_x);
  return term;
}

// Number of pixels on each side from which a sinc takes light.
inline constexpr int kSincReach = 10;
// The least shift that is applied; smaller ones are left out.
inline constexpr double kLeastSincShift = 1e-6;

// The weight of the pixel t before a pixel in an image shifted by `shift`. REQUIRES: -kSincReach <= t <=
// kSincReach.
SPEXD_HOST_DEVICE inline double SincWeight(int t, double shift) {
  constexpr double kPi = 3.14159265358979323846, kDamping = 3.25;
  if (!(std::fabs(shift) > kLeastSincShift)) return t == 0;
  const double u = t - shift, damped = u / kDamping;
  return std::exp(-damped * damped) * std::sin(kPi * u) / (kPi * u);
}

}  // namespace spexd

#endif  // SPEXD_CORE_MODEL_SPOTS_SAMPLED_FORMULA_H_
