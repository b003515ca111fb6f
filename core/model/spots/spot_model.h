// The models of spots. A PSF is traces and a spot model, which gives a fibre's spot at a wavelength and
// centre.
//
// Every model has these members:
//
//   const Stamp& GetStamp() const              pixels that a spot covers
//   int64_t Bytes() const                      memory of its tables
//   bool IsComplete() const                    whether spots can be evaluated: not in an outline, which lacks
//                                              large tables
//   WaveRange Domain() const                   wavelengths for which it is made, Angstrom
//   Status CheckOutline(int fibres) const      InvalidArgument, naming the value and the limit, unless all
//   but
//                                              the large tables has values that are possible for this number
//                                              of fibres
//   Status Check(int fibres) const             the same for all of it
//   Status CheckOn(WaveRange range) const      InvalidArgument if what spots are made of may exceed limits
//   there double Flops() const                       operations of a spot, an estimate double SigmaY(int
//   fibre, double wave) const     width along rows, pixels, an estimate void Evaluate(fibre, wave, x, y,
//   values) const  a spot's values [row, column] before they are clipped at 0
//                                                   and scaled; NaN or not positive in sum: it is empty
//   vector<LegendreTable*> Tables()            its series of all fibres
//   void EmptyFibre(int fibre)                 makes the fibre's spots empty
//   bool IsEmptyFibre(int fibre) const         whether EmptyFibre did
//
// An engine that evaluates spots has a function for each model. A new model is a new entry here, and what the
// compiler then misses.
#ifndef SPEXD_CORE_MODEL_SPOTS_SPOT_MODEL_H_
#define SPEXD_CORE_MODEL_SPOTS_SPOT_MODEL_H_

#include <variant>

#include "core/model/spots/gauss_hermite.h"
#include "core/model/spots/sampled.h"

namespace spexd {

using SpotModel = std::variant<GaussHermiteSpots, SampledSpots>;

}  // namespace spexd

#endif  // SPEXD_CORE_MODEL_SPOTS_SPOT_MODEL_H_
