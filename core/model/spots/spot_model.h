// The models of spots. A PSF is traces and a spot model, which gives a fibre's spot at a wavelength and
// centre.
//
// Every model has these members:
//
//   const Stamp& GetStamp() const            pixels that a spot covers
//   int64_t Bytes() const                    memory of its tables
//   bool IsComplete() const                  whether spots can be evaluated: not in an outline, which
//                                            lacks large tables
//   WaveRange Domain() const                 wavelengths for which it is made, Angstrom
//   Status CheckOutline(int fibres) const    InvalidArgument, naming the value and the limit, unless
//                                            all values but the large tables are possible for this
//                                            number of fibres
//   Status Check(int fibres) const           the same for all values
//   Status CheckOn(WaveRange range) const    InvalidArgument if values that make up spots may exceed
//                                            limits in the range
//   double Flops() const                     operations for a spot, an estimate
//   double SigmaY(int fibre, double wave) const
//                                            width along rows, pixels, an estimate
//   void Evaluate(fibre, wave, x, y, values) const
//                                            a spot's values [row, column] before they are clipped at 0
//                                            and scaled. If they have NaN or no positive sum, the spot
//                                            is empty
//   vector<LegendreTable*> Tables()          its series of all fibres
//   void EmptyFibre(int fibre)               makes the fibre's spots empty
//   bool IsEmptyFibre(int fibre) const       whether EmptyFibre did so
//
// An engine that evaluates spots has a function for each model. A new model is a new entry in SpotModel; the
// compiler then reports the functions that lack it.
#ifndef SPEXD_CORE_MODEL_SPOTS_SPOT_MODEL_H_
#define SPEXD_CORE_MODEL_SPOTS_SPOT_MODEL_H_

#include <variant>

#include "core/model/spots/gauss_hermite.h"
#include "core/model/spots/sampled.h"

namespace spexd {

using SpotModel = std::variant<GaussHermiteSpots, SampledSpots>;

}  // namespace spexd

#endif  // SPEXD_CORE_MODEL_SPOTS_SPOT_MODEL_H_
