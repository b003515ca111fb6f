// A whole benchmark: the first frame, the check, then what is asked for, each after the other.
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
  bool stages = false, frame = false, throughput = false, cold = false;
};

// "stages,frame": some of stages, frame, throughput and cold. InvalidArgument names one that is none of them.
absl::StatusOr<BenchParts> ParseBenchParts(const std::string& text);

// What the machine can do at most, as far as the user says so (see Peaks).
struct GivenPeaks {
  std::optional<double> flops, matrix_flops, bytes, link_bytes;
};
// Of other devices, where the user does not: an NVIDIA H200's, measured. The CPU's are measured then.
inline constexpr double kDeviceFlops = 33.5e12, kDeviceMatrixFlops = 60e12, kDeviceBytes = 4.2e12,
                        kDeviceLinkBytes = 55e9;

struct BenchOptions {
  BenchParts parts = {true, true, true, true};
  bool check = true;
  // Where not given, fewer for the CPU, whose frames take seconds.
  std::optional<int> repeats, warmup;
  std::vector<int> in_flight;
  double seconds = 5;  // of each throughput
  GivenPeaks peaks;
  double process_seconds = 0;  // from the process's start to main
};

using EngineMaker = std::function<absl::StatusOr<ChosenEngine>()>;
using Announce = std::function<void(const std::string& what)>;

// Makes the engine when the inputs lie in memory, and times it. Where the check found something wrong
// (Report::check), nothing else was timed. An error is an engine's own, or a lost or failed bundle.
absl::StatusOr<Report> RunBench(const Inputs& inputs, const BenchOptions& options, const EngineMaker& make,
                                const Announce& announce);

}  // namespace spexd::bench

#endif  // SPEXD_CLIENT_BENCH_BENCH_H_
