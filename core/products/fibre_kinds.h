// What a frame's fibermap says of its fibres.
#ifndef SPEXD_CORE_PRODUCTS_FIBRE_KINDS_H_
#define SPEXD_CORE_PRODUCTS_FIBRE_KINDS_H_

#include <vector>

#include "absl/status/statusor.h"
#include "core/model/frame.h"

namespace spexd {

struct FibreKinds {
  std::vector<int> good_sky;  // rows of sky fibres (OBJTYPE SKY) from which the sky is made
  std::vector<int> targets;   // rows of all other fibres
  // [row]: a fatal bit of FIBERSTATUS is set. The spectrum is not that of its target, or is badly calibrated.
  std::vector<bool> fatal;
};

// Bits of FIBERSTATUS count as in desispec (get_all_fiberbitmask_with_amp; for sky fibres also
// VARIABLETHRU): those of amplifiers in the frame's own band alone, and informative ones not at all. Without
// the column no fibre is bad. InvalidArgument without a fibermap that has OBJTYPE, or where its columns are of
// other types.
absl::StatusOr<FibreKinds> FibreKindsOf(const Frame& frame);

}  // namespace spexd

#endif  // SPEXD_CORE_PRODUCTS_FIBRE_KINDS_H_
