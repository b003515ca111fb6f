// cuda_traces_benchmark [FIBRES [ROWS [REPEATS]]]: the time of a measurement of trace shifts on device 0, and
// of its kernels, on a simulated frame (500 fibres x 4128 rows, 11 repeats).
#include <cuda_runtime_api.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <string>
#include <vector>

#include "core/traces/measure.h"
#include "cuda/traces/measure.h"
#include "tests/cuda_traces/trace_device.h"
#include "tests/traces/shifted_frame.h"

namespace spexd::testing {
namespace {

double Median(std::vector<double> values) {
  std::ranges::sort(values);
  return values[values.size() / 2];
}
double MillisecondsSince(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
}

int Run(int fibres, int rows, int repeats) {
  if (!FindTraceDevice()) {
    std::printf("no device\n");
    return 1;
  }
  ShiftedFrameOptions options;
  options.simulator = {.camera = 'r', .fibres = fibres, .rows = rows, .seed = 11};
  options.x = MakeSeries({{0.35, 0.06}, {-0.12, 0.04}});
  options.y = MakeSeries({{-0.28, 0.05}, {0.08, 0.03}});
  const ShiftedFrame frame = MakeShiftedFrame(options);
  const TraceShiftOptions trace_options;
  TraceDeviceUnderTest under_test;
  under_test.Load(frame.image);

  auto start = std::chrono::steady_clock::now();
  const auto expected =
      MeasureTraceShifts(frame.image, frame.psf, &frame.sky, trace_options, {.threads = 16});
  std::printf("processors, 16 threads at most: %.1f ms\n", MillisecondsSince(start));
  start = std::chrono::steady_clock::now();
  const traces::PreparedReference reference(frame.sky, frame.psf, trace_options);
  std::printf("preparing the reference, once for many frames: %.2f ms\n", MillisecondsSince(start));

  start = std::chrono::steady_clock::now();
  auto prepared = under_test.Prepare(frame.psf);
  if (prepared.ok()) {
    start = std::chrono::steady_clock::now();
    prepared = under_test.Prepare(frame.psf);
  }
  if (!prepared.ok()) {
    std::printf("%s\n", std::string(prepared.status().message()).c_str());
    return 1;
  }
  std::printf("preparing the PSF's traces, once for many frames: %.2f ms\n", MillisecondsSince(start));

  // Complete measurements, then measurements that wait after each group of kernels.
  std::vector<double> whole;
  std::map<std::string, std::vector<double>> of_group;
  std::map<std::string, int> calls;
  absl::StatusOr<TraceShifts> shifts;
  for (int k = 0; k < 2 * repeats + 2; ++k) {
    const bool apart = k > repeats, warm = k != 0 && k != repeats + 1;
    cuda::TraceDevice device = under_test.device();
    std::map<std::string, double> seconds;
    auto last = std::chrono::steady_clock::now();
    start = last;
    if (apart) {
      calls.clear();
      device.enqueued = [&](const char* name) {
        cudaStreamSynchronize(device.stream);
        seconds[name] += MillisecondsSince(last);
        ++calls[name];
        last = std::chrono::steady_clock::now();
      };
    }
    shifts = under_test.Measure(device, frame.psf, *prepared, &reference, trace_options);
    if (!shifts.ok()) {
      std::printf("%s\n", std::string(shifts.status().message()).c_str());
      return 1;
    }
    if (!apart && warm) whole.push_back(MillisecondsSince(start));
    if (!apart || !warm) continue;
    seconds["(after the last kernel)"] += MillisecondsSince(last);
    for (const auto& [name, value] : seconds) of_group[name].push_back(value);
  }
  std::printf("%d fibres x %d rows: median %.2f ms, least %.2f (aim 5, estimate 3); %d passes, %d lines\n",
              fibres, frame.image.rows(), Median(whole), *std::ranges::min_element(whole), shifts->passes,
              shifts->lines);
  std::printf("\n%-28s %6s %9s %9s   with what the host does before it, waiting after each\n", "stage",
              "calls", "ms", "ms a call");
  double all = 0;
  for (const auto& [name, values] : of_group) {
    const double sum = Median(values);
    std::printf("%-28s %6d %9.3f %9.4f\n", name.c_str(), calls[name], sum, sum / std::max(calls[name], 1));
    all += sum;
  }
  std::printf("%-28s %6s %9.3f\n", "sum", "", all);
  std::printf(
      "floors, ms a call: traces 0.002, row pass 0.07, normal equations 0.02, common light "
      "0.02, lines 0.08, a round of a series 0.015\n");
  if (expected.ok()) {
    for (const char name : {'x', 'y'}) {
      const AxisShifts &found = name == 'x' ? shifts->x : shifts->y,
                       &of_processors = name == 'x' ? expected->x : expected->y;
      const SeriesDifference difference = Difference(frame.psf, found.series, of_processors.series);
      std::printf("d%c: %s, differs from processors by %.2g pixels rms, %.2g at most\n", name,
                  ShiftStatusName(found.status), difference.rms, difference.largest);
    }
  }
  return 0;
}

}  // namespace
}  // namespace spexd::testing

int main(int argc, char** argv) {
  const auto number = [&](int k, int otherwise) { return argc > k ? std::atoi(argv[k]) : otherwise; };
  return spexd::testing::Run(number(1, 500), number(2, 4128), number(3, 11));
}
