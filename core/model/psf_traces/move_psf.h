// Moves a PSF by trace shifts.
#ifndef SPEXD_CORE_MODEL_PSF_TRACES_MOVE_PSF_H_
#define SPEXD_CORE_MODEL_PSF_TRACES_MOVE_PSF_H_

#include <vector>

#include "core/model/psf.h"
#include "core/model/traces/trace_shifts.h"

namespace spexd {

// The coordinate u of each fibre in series of shifts: 2 X(t = 0) / (columns - 1) - 1. REQUIRES: columns > 1.
std::vector<double> FibrePositions(const Psf& psf);

// The PSF with shifted traces. The result is exact: coefficient b of fibre i gains sum_a c(a, b) L_a(u_i),
// with u of `psf` itself. Lost fibres (core/model/psf_traces/lost_fibres.h) stay midway between their
// neighbours. Everything else is copied except content_hash, which becomes "". REQUIRES: XTRACE and YTRACE
// have one domain.
Psf MovePsf(const Psf& psf, const ShiftSeries& x, const ShiftSeries& y);
Psf MovePsf(const Psf& psf, const TraceShifts& shifts);

// The moved traces of one axis. `positions`: those of the fibres (FibrePositions).
LegendreTable MovedTraces(const LegendreTable& traces, const std::vector<double>& positions,
                          const ShiftSeries& series);

}  // namespace spexd

#endif  // SPEXD_CORE_MODEL_PSF_TRACES_MOVE_PSF_H_
