// The coarse shift in x, common to all fibres.
#ifndef SPEXD_CORE_TRACES_ROWS_COARSE_H_
#define SPEXD_CORE_TRACES_ROWS_COARSE_H_

#include <array>
#include <vector>

#include "absl/status/statusor.h"
#include "core/base/threads/parallel.h"
#include "core/model/image.h"
#include "core/traces/rows/trace_rows.h"
#include "core/traces/shifts/options.h"

namespace spexd::traces {

inline constexpr int kCoarseReach = 12;  // columns on either side of a trace
inline constexpr int kCoarseOffsets = 2 * kCoarseReach + 1;
inline constexpr int kCoarseStretches = 16;  // stretches of rows

// The light at each offset from a trace: the median, over stretches of rows, of the mean over usable pixels;
// 0 if there are none.
using CoarseProfile = std::array<double, kCoarseOffsets>;

struct CoarseShift {
  double dx = 0;     // pixels
  double score = 0;  // correlation of the light with the traces at dx; 0 if there is no light
  double away = 0;   // the highest score more than 4 pixels away
};

// Finds the coarse shift by correlating the light about all traces with a Gaussian. The light at each offset
// from a trace is the median of 16 stretches of rows, so that a cosmic ray does no harm. A fibre counts at
// most three times the median fibre. Only the ends and gaps of bundles tell a shift from the same shift one
// fibre away. `stride`: every stride-th row is used.
absl::StatusOr<CoarseShift> FindCoarseShift(const Image& image, const TraceRows& rows, int stride,
                                            const TraceShiftOptions& options, const Workers& workers);

// Finds the coarse shift from the profiles of all fibres, [fibre].
CoarseShift CoarseShiftOf(std::vector<CoarseProfile> profiles, const TraceShiftOptions& options);

}  // namespace spexd::traces

#endif  // SPEXD_CORE_TRACES_ROWS_COARSE_H_
