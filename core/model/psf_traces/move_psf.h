// Moving a PSF by trace shifts.
#ifndef SPEXD_CORE_MODEL_PSF_TRACES_MOVE_PSF_H_
#define SPEXD_CORE_MODEL_PSF_TRACES_MOVE_PSF_H_

#include <vector>

#include "core/model/psf.h"
#include "core/model/traces/trace_shifts.h"

namespace spexd {

// Coordinate u of each fibre in series of shifts: 2 X(t = 0) / (columns - 1) - 1. REQUIRES: columns > 1.
std::vector<double> FibrePositions(const Psf& psf);

// The PSF with shifted traces. It is exact: coefficient b of fibre i gains sum_a c(a, b) L_a(u_i), with u of
// `psf` itself; lost fibres (core/model/psf_traces/lost_fibres.h) stay in the middle between their
// neighbours. Everything else is copied but content_hash, which becomes "". REQUIRES: XTRACE and YTRACE have
// one domain.
Psf MovePsf(const Psf& psf, const ShiftSeries& x, const ShiftSeries& y);
Psf MovePsf(const Psf& psf, const TraceShifts& shifts);

// The traces of one axis, moved; `positions` are the fibres'.
LegendreTable MovedTraces(const LegendreTable& traces, const std::vector<double>& positions,
                          const ShiftSeries& series);

}  // namespace spexd

#endif  // SPEXD_CORE_MODEL_PSF_TRACES_MOVE_PSF_H_
