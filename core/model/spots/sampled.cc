#include "core/model/spots/sampled.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <utility>
#include <vector>

#include "absl/strings/str_format.h"
#include "core/base/status_macros.h"

namespace spexd {
namespace {

// Part of the positions' span by which a fibre may lie beyond the first and last, because files round.
constexpr double kPositionMargin = 0.01;
constexpr int kMaxExponent = 32;  // limit on a power of a polynomial

bool IsConstant(const ImagePowers& powers) { return powers.x == 0 && powers.y == 0; }

absl::Status CheckAxis(const char* name, const StampAxis& axis) {
  if (axis.size >= 1 && axis.size <= kMaxStampSide && axis.lead >= 0 && axis.lead < 1)
    return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrFormat("PSF: a spot covers %d CCD %s, must be 1 to %d", axis.size, name, kMaxStampSide));
}

absl::Status CheckAscending(const char* name, const std::vector<double>& numbers) {
  for (size_t k = 0; k < numbers.size(); ++k) {
    const bool finite = std::isfinite(numbers[k]) && std::fabs(numbers[k]) <= kMaxWavelength;
    if (!finite || (k > 0 && !(numbers[k] > numbers[k - 1]))) {
      return absl::InvalidArgumentError(absl::StrFormat(
          "PSF: number %d of %s is %g, must be more than the one before and within %g either way", k + 1,
          name, numbers[k], kMaxWavelength));
    }
  }
  return absl::OkStatus();
}

// Checks a grid's images, fibres and axes.
absl::Status CheckImageGrid(const SampledSpots& spots) {
  const SampledLayout& layout = spots.layout;
  const int64_t positions = std::ssize(spots.positions), wavelengths = std::ssize(spots.wavelengths);
  if (layout.positions != positions || layout.wavelengths != wavelengths ||
      layout.images != positions * wavelengths) {
    return absl::InvalidArgumentError(absl::StrFormat(
        "PSF: %d images of spots (SPOTS) for %d x %d places, must be one for each of %d positions "
        "(SPOTPOS) x %d wavelengths (SPOTWAVE)",
        layout.images, layout.positions, layout.wavelengths, positions, wavelengths));
  }
  SPEXD_RETURN_IF_ERROR(CheckAscending("SPOTPOS", spots.positions));
  SPEXD_RETURN_IF_ERROR(CheckAscending("SPOTWAVE", spots.wavelengths));
  if (positions < 2) return absl::OkStatus();
  const double first = spots.positions.front(), last = spots.positions.back();
  const double margin = kPositionMargin * (last - first);
  for (size_t k = 0; k < spots.fibres.size(); ++k) {
    const SampledFibre& fibre = spots.fibres[k];
    if (fibre.is_empty != 0 || (fibre.position >= first - margin && fibre.position <= last + margin))
      continue;
    return absl::InvalidArgumentError(absl::StrFormat(
        "PSF: fibre %d is at %g on the slit (FIBERPOS), but there are spots from %g to %g only (SPOTPOS)", k,
        fibre.position, first, last));
  }
  return absl::OkStatus();
}

// Checks the images, fibres and powers of polynomials.
absl::Status CheckPolynomials(const SampledSpots& spots) {
  const SampledLayout& layout = spots.layout;
  const int groups = layout.images / layout.powers;
  if (layout.powers != std::ssize(spots.powers) || layout.images != groups * layout.powers) {
    return absl::InvalidArgumentError(absl::StrFormat(
        "PSF: %d images of spots for %d powers, must be one for each of %d powers (NEXP) in each "
        "group",
        layout.images, layout.powers, spots.powers.size()));
  }
  for (const ImagePowers& power : spots.powers) {
    if (std::min(power.x, power.y) >= 0 && std::max(power.x, power.y) <= kMaxExponent) continue;
    return absl::InvalidArgumentError(absl::StrFormat(
        "PSF: exponents of x and y are %d and %d (NEXP), must be 0 to %d", power.x, power.y, kMaxExponent));
  }
  for (size_t k = 0; k < spots.fibres.size(); ++k) {
    const int group = spots.fibres[k].group;
    if (group >= 0 && group < groups) continue;
    return absl::InvalidArgumentError(
        absl::StrFormat("PSF: fibre %d is of group %d (XYSCALE), must be 0 to %d", k, group, groups - 1));
  }
  return absl::OkStatus();
}

}  // namespace

int64_t StampsBytes(const SampledLayout& layout) {
  return layout.stamps() * layout.stamp.pixels() * static_cast<int64_t>(sizeof(float));
}

SampledView SampledSpots::View() const {
  return {layout, stamps.data(), fibres.data(), positions.data(), wavelengths.data(), powers.data()};
}

int64_t SampledSpots::Bytes() const {
  return StampsBytes(layout) + static_cast<int64_t>(fibres.size() * sizeof(SampledFibre) +
                                                    (positions.size() + wavelengths.size()) * sizeof(double) +
                                                    powers.size() * sizeof(ImagePowers));
}

WaveRange SampledSpots::Domain() const {
  if (wavelengths.size() < 2) return {-kMaxWavelength, kMaxWavelength};
  return {wavelengths.front(), wavelengths.back()};
}

absl::Status SampledSpots::CheckOutline(int fibre_count) const {
  SPEXD_RETURN_IF_ERROR(CheckAxis("columns", layout.stamp.x));
  SPEXD_RETURN_IF_ERROR(CheckAxis("rows", layout.stamp.y));
  if (layout.phases < 1 || layout.phases > kMaxPhases) {
    return absl::InvalidArgumentError(absl::StrFormat(
        "PSF: a CCD pixel has %d samples along an axis, must be 1 to %d", layout.phases, kMaxPhases));
  }
  const bool leads = layout.stamp.x.lead != 0 || layout.stamp.y.lead != 0;
  if (layout.shift == SubpixelShift::kSinc && layout.phases > 1 && leads) {
    return absl::InvalidArgumentError(absl::StrFormat(
        "PSF: images of %d samples a CCD pixel that a sinc shifts must begin at a pixel's edge",
        layout.phases));
  }
  if (layout.images < 1 || layout.images > kMaxSampledImages || layout.powers < 0 ||
      layout.powers > kMaxImagePowers) {
    return absl::InvalidArgumentError(
        absl::StrFormat("PSF: %d images of spots, of %d powers; must be 1 to %d, of at most %d powers",
                        layout.images, layout.powers, kMaxSampledImages, kMaxImagePowers));
  }
  if (StampsBytes(layout) > kMaxStampsBytes) {
    return absl::InvalidArgumentError(absl::StrFormat(
        "PSF: the images of spots take %d bytes, the limit is %d", StampsBytes(layout), kMaxStampsBytes));
  }
  if (static_cast<int>(fibres.size()) != fibre_count) {
    return absl::InvalidArgumentError(
        absl::StrFormat("PSF: the spots are of %d fibres, the traces of %d", fibres.size(), fibre_count));
  }
  return layout.powers == 0 ? CheckImageGrid(*this) : CheckPolynomials(*this);
}

absl::Status SampledSpots::Check(int fibre_count) const {
  SPEXD_RETURN_IF_ERROR(CheckOutline(fibre_count));
  if (stamps.shape(0) != layout.stamps() || stamps.shape(1) != layout.stamp.pixels()) {
    return absl::InvalidArgumentError(
        absl::StrFormat("PSF: the images of spots are %d stamps of %d CCD pixels, must be %d of %d",
                        stamps.shape(0), stamps.shape(1), layout.stamps(), layout.stamp.pixels()));
  }
  const int64_t per_image = int64_t{layout.stored_phases()} * layout.stored_phases();
  for (int64_t image = 0; image < layout.images; ++image) {
    double sum = 0;
    for (const float value : stamps.Row(image * per_image)) sum += value;
    // Only the constant image of a polynomial must be positive; the others are changes of it.
    const bool is_change = layout.powers > 0 && !IsConstant(powers[image % layout.powers]);
    if (std::isfinite(sum) && (sum > 0 || is_change)) continue;
    return absl::InvalidArgumentError(absl::StrFormat(
        "PSF: the samples of image %d of %d, in the file's order from 0, add up to %g, must be %s", image,
        layout.images, sum, is_change ? "finite" : "positive and finite"));
  }
  return absl::OkStatus();
}

absl::Status SampledSpots::CheckOn(WaveRange range) const {
  if (layout.powers == 0) return absl::OkStatus();
  // LocateSpot limits the positions of spots far off the CCD to 1e6 pixels.
  constexpr double kFarthest = 1e6;
  for (size_t k = 0; k < fibres.size(); ++k) {
    const SampledFibre& fibre = fibres[k];
    const double x = std::fabs(fibre.x_scale) * (kFarthest + std::fabs(fibre.x0));
    const double y = std::fabs(fibre.y_scale) * (kFarthest + std::fabs(fibre.y0));
    for (const ImagePowers& power : powers) {
      const double most = IntegerPower(x, power.x) * IntegerPower(y, power.y);
      if (std::isfinite(most)) continue;
      return absl::InvalidArgumentError(
          absl::StrFormat("PSF: x^%d y^%d of fibre %d (NEXP, XYSCALE) may reach %g, must be finite", power.x,
                          power.y, k, most));
    }
  }
  return absl::OkStatus();
}

double SampledSpots::Flops() const {
  const double pixels = layout.stamp.pixels();
  const double sinc = layout.shift == SubpixelShift::kSinc ? 2.0 * 2 * (2 * kSincReach + 1) : 0;
  return pixels * (2.0 * layout.terms() + sinc + 3) + 20.0 * layout.terms();
}

double SampledSpots::SigmaY(int fibre, double wave) const {
  return sigma_y > 0 ? sigma_y : 0.1 * layout.stamp.y.size;
}

void SampledSpots::Evaluate(int fibre, double wave, const SpotPosition& x, const SpotPosition& y,
                            absl::Span<double> values) const {
  const SampledView view = View();
  const SampledPlace place = FindPlace(view, fibre, wave, x, y);
  std::ranges::fill(values, 0.0);
  for (int k = 0; k < layout.terms(); ++k) {
    const SampledTerm term = TermOf(view, place, k);
    const absl::Span<const float> stamp = stamps.Row(term.stamp);
    for (size_t p = 0; p < values.size(); ++p) values[p] += term.weight * stamp[p];
  }
  if (layout.shift == SubpixelShift::kSinc) {
    SincShift(layout.stamp.x.size, layout.stamp.y.size, place.ShiftX(layout), place.ShiftY(layout), values);
  }
}

void SampledSpots::EmptyFibre(int fibre) { fibres[static_cast<size_t>(fibre)] = {.is_empty = 1}; }

bool SampledSpots::IsEmptyFibre(int fibre) const { return fibres[static_cast<size_t>(fibre)].is_empty != 0; }

void LayOutImages(int columns, int rows, int oversampling, double centre_x, double centre_y,
                  SampledLayout* layout) {
  const auto axis = [oversampling](int samples, double centre) {
    const double start = 0.5 - (centre + 0.5) / oversampling, low = std::floor(start);
    return StampAxis{(samples + oversampling - 1) / oversampling + 1, static_cast<int>(-low), start - low};
  };
  layout->stamp = {axis(columns, centre_x), axis(rows, centre_y)};
  layout->phases = oversampling;
}

void BinImage(absl::Span<const double> image, int columns, int rows, const SampledLayout& layout,
              absl::Span<float> stamps) {
  const int nx = layout.stamp.x.size, ny = layout.stamp.y.size, n = layout.phases,
            stored = layout.stored_phases();
  std::vector<double> along(static_cast<size_t>(rows) * nx), stamp(static_cast<size_t>(ny) * nx);
  for (int phase_x = 0; phase_x < stored; ++phase_x) {
    std::ranges::fill(along, 0.0);
    for (int row = 0; row < rows; ++row) {
      for (int column = 0; column < columns; ++column)
        along[row * nx + (column + phase_x) / n] += image[row * columns + column];
    }
    for (int phase_y = 0; phase_y < stored; ++phase_y) {
      std::ranges::fill(stamp, 0.0);
      for (int row = 0; row < rows; ++row) {
        for (int column = 0; column < nx; ++column)
          stamp[(row + phase_y) / n * nx + column] += along[row * nx + column];
      }
      std::ranges::transform(stamp, stamps.begin() + (int64_t{phase_y} * stored + phase_x) * ny * nx,
                             [](double value) { return static_cast<float>(value); });
    }
  }
}

double MeanSigmaY(const SampledSpots& spots) {
  const SampledLayout& layout = spots.layout;
  const int nx = layout.stamp.x.size, ny = layout.stamp.y.size;
  const int64_t per_image = int64_t{layout.stored_phases()} * layout.stored_phases();
  double sum = 0, first = 0, second = 0;
  for (int64_t image = 0; image < layout.images; ++image) {
    if (layout.powers > 0 && !IsConstant(spots.powers[image % layout.powers])) continue;
    const absl::Span<const float> stamp = spots.stamps.Row(image * per_image);
    for (int row = 0; row < ny; ++row) {
      for (int column = 0; column < nx; ++column) {
        const double value = std::max(stamp[row * nx + column], 0.0f);
        sum += value;
        first += value * row;
        second += value * row * row;
      }
    }
  }
  const double mean = first / sum, variance = second / sum - mean * mean;
  return variance > 0 ? std::sqrt(variance) : 0;
}

namespace {

// Shifts a line by a sinc. Pixels beyond its ends are 0.
void ShiftLine(const std::vector<double>& line, double shift, std::vector<double>* shifted) {
  const int count = static_cast<int>(line.size());
  shifted->assign(line.size(), 0.0);
  for (int t = -kSincReach; t <= kSincReach; ++t) {
    const double weight = SincWeight(t, shift);
    for (int k = std::max(t, 0); k < std::min(count, count + t); ++k) (*shifted)[k] += weight * line[k - t];
  }
}

}  // namespace

void SincShift(int columns, int rows, double shift_x, double shift_y, absl::Span<double> image) {
  std::vector<double> line(image.begin(), image.end()), shifted;
  ShiftLine(line, shift_x, &shifted);
  for (int row = 0; row < rows; ++row) {
    for (int column = 0; column < columns; ++column)
      line[column * rows + row] = shifted[row * columns + column];
  }
  ShiftLine(line, shift_y, &shifted);
  for (int row = 0; row < rows; ++row) {
    for (int column = 0; column < columns; ++column)
      image[row * columns + column] = shifted[column * rows + row];
  }
}

}  // namespace spexd
