#include "core/traces/rows/x_shifts.h"

#include "core/base/status_macros.h"
#include "core/traces/rows/x_formula.h"

namespace spexd::traces {
absl::StatusOr<ShiftMeasurements> MeasureXShifts(const RowSpectra& spectra, const TraceRows& rows,
                                                 const std::vector<double>& positions, int stride,
                                                 const TraceShiftOptions& options, const Workers& workers) {
  const int all = static_cast<int>(spectra.flux.shape(1));
  const int size = options.block_rows * stride, blocks = all / size;
  ShiftMeasurements measured;
  measured.Resize(static_cast<size_t>(rows.fibres()) * blocks);
  SPEXD_RETURN_IF_ERROR(ParallelFor(rows.fibres(), workers, [&](int64_t i) {
    const int fibre = static_cast<int>(i);
    const float *flux = spectra.flux.Row(i).data(), *ivar = spectra.ivar.Row(i).data(),
                *moment = spectra.moment.Row(i).data(), *moment_ivar = spectra.moment_ivar.Row(i).data();
    for (int block = 0; block < blocks; ++block) {
      const size_t index = static_cast<size_t>(i) * blocks + block;
      measured.u[index] = positions[i];
      XSums sums;
      for (int row = block * size; row < (block + 1) * size; row += stride) {
        sums.Add(row, flux[row], ivar[row], moment[row], moment_ivar[row]);
      }
      if (!sums.IsMeasured(options.block_rows)) continue;
      measured.value[index] = sums.Shift();
      measured.info[index] = sums.Info();
      measured.t[index] = rows.At(fibre, sums.MeanRow()).t;
    }
    return absl::OkStatus();
  }));
  return measured;
}

}  // namespace spexd::traces
