// A whole benchmark: the first frame, the check, and the parts that are asked for, one after the other.
#ifndef SPEXD_CLIENT_BENCH_BENCH_H_
#define SPEXD_CLIENT_BENCH_BENCH_H_

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "client/bench/inputs.h"
#include "client/bench/report.h"
#include "cuda/loader/choose_engine.h"

namespace spexd::bench {

struct BenchParts {
  bool stages = false, frame = false, throughput = false, cold = false, products = false, traces = false;
};

// Parses a list such as "stages,frame" of stages, frame, throughput, cold, products and traces.
// InvalidArgument names an unknown part.
absl::StatusOr<BenchParts> ParseBenchParts(const std::string& text);

// The peak rates of the machine that the user gives (see Peaks).
struct GivenPeaks {
  std::optional<double> flops, matrix_flops, bytes, link_bytes;
};
// The default peaks of a CUDA device, which were measured on an NVIDIA H200. Those of the CPU are measured at
// run time.
inline constexpr double kDeviceFlops = 33.5e12, kDeviceMatrixFlops = 60e12, kDeviceBytes = 4.2e12,
                        kDeviceLinkBytes = 55e9;

struct BenchOptions {
  BenchParts parts = {.stages = true, .frame = true, .throughput = true, .cold = true};
  bool check = true;
  // The default is smaller for the CPU, whose frames take seconds.
  std::optional<int> repeats, warmup;
  std::vector<int> in_flight;
  double seconds = 5;  // duration of each throughput measurement
  GivenPeaks peaks;
  double process_seconds = 0;  // time from the process's start to main
};

using EngineMaker = std::function<absl::StatusOr<ChosenEngine>()>;
using Announce = std::function<void(const std::string& what)>;

// Makes the engine, which is timed, when the inputs are in memory. If the check finds something wrong
// (Report::check), nothing else is timed. Errors are those of the engine, and lost or failed bundles.
absl::StatusOr<Report> RunBench(const Inputs& inputs, const BenchOptions& options, const EngineMaker& make,
                                const Announce& announce);

}  // namespace spexd::bench

#endif  // SPEXD_CLIENT_BENCH_BENCH_H_
