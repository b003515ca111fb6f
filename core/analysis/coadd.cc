#include "core/analysis/coadd.h"

namespace spexd {

void CoaddExposures(const std::vector<Exposure>& exposures, int64_t fibre, Spectra* to) {
  CoaddSums sums(to->flux.shape(1));
  for (const Exposure& exposure : exposures) sums.Add(exposure);
  sums.Write(fibre, to);
}

}  // namespace spexd
