// Stage "normal": the normal equations A^T W A, A^T W p and A^T W 1, straight from spots; A is never formed.
#ifndef SPEXD_CORE_EXTRACT_CPU_NORMAL_H_
#define SPEXD_CORE_EXTRACT_CPU_NORMAL_H_

#include <cstdint>

#include "core/base/aligned_buffer.h"
#include "core/extract/cpu/bundle_image.h"
#include "core/extract/cpu/spots.h"
#include "core/extract/cpu/tiled_band.h"
#include "core/plan/bundle_plan.h"

namespace spexd::cpu {

// Of a whole bundle: groups share the pairs of their guard fibres.
class NormalEquations {
 public:
  void Compute(const BundlePlan& plan, const Spots& spots, const BundleImage& image);

  double flux_weight(int bin, int fibre) const { return weight_.data()[bin * fibres_ + fibre]; }  // A^T W 1
  double data(int bin, int fibre) const { return data_.data()[bin * fibres_ + fibre]; }           // A^T W p
  // The products of spot (bin, fibre) with spots (bin + dbin, fibre + dfibre), dbin = 0..reach, dfibre =
  // -fibre_reach..fibre_reach, as [dbin][dfibre + fibre_reach]; for dbin = 0 only dfibre >= 0 is set.
  const double* Pairs(int bin, int fibre) const {
    return pairs_.data() + (static_cast<int64_t>(bin) * fibres_ + fibre) * pairs_per_spot_;
  }

  static int64_t Bytes(const BundlePlan& plan);

 private:
  int fibres_ = 0, pairs_per_spot_ = 0;
  AlignedBuffer<double> weight_, data_, pairs_;
};

// The system of one group: unknowns wavelength-major, index = bin * solved fibres + fibre.
struct GroupSystem {
  TiledBand matrix;             // A^T W A + Lambda
  AlignedBuffer<double> flux;   // A^T W p, padded to whole tiles; the solution after solving
  AlignedBuffer<uint8_t> weak;  // [bin, solved fibre]: the bin hardly touches data
  int fibres = 0;
  int bins = 0;
};

void AssembleGroup(const BundlePlan& plan, const NormalEquations& normal, const FibreGroup& group,
                   double regularize, bool fine_grid, GroupSystem* system);

}  // namespace spexd::cpu

#endif  // SPEXD_CORE_EXTRACT_CPU_NORMAL_H_
