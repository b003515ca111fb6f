// Sampled spots: images of spots, either at positions on the slit and wavelengths, or as the terms of
// polynomials. They are interpolated and shifted to the place of a spot (sampled_formula.h).
#ifndef SPEXD_CORE_MODEL_SPOTS_SAMPLED_H_
#define SPEXD_CORE_MODEL_SPOTS_SAMPLED_H_

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "core/base/shared_array.h"
#include "core/model/spots/sampled_formula.h"
#include "core/model/spots/stamp.h"
#include "core/model/traces/traces.h"

namespace spexd {

inline constexpr int kMaxSampledImages = 4096;
inline constexpr int64_t kMaxStampsBytes = int64_t{1} << 30;

struct SampledSpots {
  SampledLayout layout;
  SharedArray<float, 2> stamps;      // [stamp, pixel]; empty in an outline
  std::vector<SampledFibre> fibres;  // [fibre]
  std::vector<double> positions;     // positions of a grid's images on the slit, ascending
  std::vector<double> wavelengths;
  std::vector<ImagePowers> powers;  // powers of each image of polynomials
  double sigma_y = 0;               // mean image's width along rows, pixels, an estimate; 0 in an outline

  SampledView View() const;

  // The members that every spot model has (spot_model.h).
  const Stamp& GetStamp() const { return layout.stamp; }
  int64_t Bytes() const;
  bool IsComplete() const { return stamps.size() > 0; }
  WaveRange Domain() const;
  absl::Status CheckOutline(int fibre_count) const;
  absl::Status Check(int fibre_count) const;
  absl::Status CheckOn(WaveRange range) const;
  double Flops() const;
  double SigmaY(int fibre, double wave) const;
  void Evaluate(int fibre, double wave, const SpotPosition& x, const SpotPosition& y,
                absl::Span<double> values) const;
  std::vector<LegendreTable*> Tables() { return {}; }
  void EmptyFibre(int fibre);
  bool IsEmptyFibre(int fibre) const;
};

// Bytes that the stamps of a layout take.
int64_t StampsBytes(const SampledLayout& layout);

// Sets a grid's stamp and phases for images of columns x rows samples, `oversampling` of them to a CCD pixel
// along each axis. The spot's centre is at sample (centre_x, centre_y), whose integers are the samples'
// centres.
void LayOutImages(int columns, int rows, int oversampling, double centre_x, double centre_y,
                  SampledLayout* layout);

// Sums the samples of an image [row, column] in the pixels of its stamps, one stamp for each stored phase.
// `stamps` has room for stored_phases^2 stamps.
void BinImage(absl::Span<const double> image, int columns, int rows, const SampledLayout& layout,
              absl::Span<float> stamps);

// The width in pixels, along rows and about its centre, of the mean of all images at phase 0. Of polynomials,
// only the constant images count.
double MeanSigmaY(const SampledSpots& spots);

// Shifts an image [row, column] by a sinc, first along rows and then along columns. The image is treated as
// one line of pixels, row after row and then column after column, as in specter: the end of a row neighbours
// the beginning of the next row.
void SincShift(int columns, int rows, double shift_x, double shift_y, absl::Span<double> image);

}  // namespace spexd

#endif  // SPEXD_CORE_MODEL_SPOTS_SAMPLED_H_
