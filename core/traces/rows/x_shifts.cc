#include "core/traces/rows/x_shifts.h"

#include "core/base/status_macros.h"

namespace spexd::traces {
namespace {

constexpr double kMinSignal = 25;        // least sum w (g^2 - var g): an error below 0.2 pixels
constexpr double kMinSignalPart = 0.25;  // of sum w g^2; below, noise dominates the flux
constexpr int kMinRowsPart = 4;          // a block needs one in so many of its rows

}  // namespace

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
      double top = 0, signal = 0, noise = 0, row_sum = 0;
      int count = 0;
      for (int row = block * size; row < (block + 1) * size; row += stride) {
        if (!(moment_ivar[row] > 0)) continue;
        const double g = flux[row], w = moment_ivar[row];
        ++count;
        top += w * g * moment[row];
        noise += w * g * g;
        signal += w * (g * g - 1.0 / ivar[row]);
        row_sum += w * g * g * row;
      }
      if (!(signal > kMinSignal && signal > kMinSignalPart * noise &&
            count >= options.block_rows / kMinRowsPart)) {
        continue;
      }
      measured.value[index] = top / signal;
      measured.info[index] = signal * signal / noise;
      measured.t[index] = rows.At(fibre, static_cast<int>(row_sum / noise)).t;
    }
    return absl::OkStatus();
  }));
  return measured;
}

}  // namespace spexd::traces
