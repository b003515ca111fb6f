// The report of a benchmark, as tables for people and as JSON for programs.
#ifndef SPEXD_CLIENT_BENCH_REPORT_H_
#define SPEXD_CLIENT_BENCH_REPORT_H_

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "client/bench/check.h"
#include "client/bench/floor.h"
#include "client/bench/measure.h"
#include "client/bench/products.h"

namespace spexd::bench {

// The peak rates of the machine, from which floors follow.
struct Peaks {
  double flops = 0;         // float64 operations per second
  double matrix_flops = 0;  // float64 operations per second of matrix units; `flops` if there are none
  double bytes = 0;         // bytes of memory read and written per second
  double link_bytes = 0;    // bytes per second between host and device, each way; 0: one memory
  int threads = 1;          // threads that reach these rates together; stages' seconds are summed over them
  std::string origin;       // "measured on 2 threads", "assumed ..."
};

// Returns the floor of a stage in the unit of StageTimes, which are seconds summed over threads.
double LeastSeconds(Stage stage, const Floor& floor, const Peaks& peaks);
bool IsMemoryBound(Stage stage, const Floor& floor, const Peaks& peaks);

struct ColdStart {
  double process = 0;  // from the process's start to main; 0: not known
  double engine = 0;   // time to make the engine: context, module, memory
  FrameTiming frame;   // the first frame, with its own PSF

  // The time until the first bundle, without reading or simulating the input.
  double total() const { return process + engine + frame.first_bundle; }
};

struct Report {
  std::string command;
  std::string time;       // time of the measurement, UTC
  std::string processor;  // processor of the host
  int processors = 0;
  EngineInfo engine;
  std::vector<DeviceStatus> devices;
  std::string note;  // why this engine was chosen
  std::string input;
  int fibres = 0, bundles = 0, ccd_rows = 0, ccd_columns = 0;
  WavelengthGrid grid;
  int64_t image_bytes = 0, result_bytes = 0;
  Peaks peaks;
  StageFloors floors;
  std::optional<CheckReport> check;
  std::optional<ColdStart> cold;
  bool stages = false, frame = false;  // which tables of `series` are shown
  std::optional<FrameSeries> series;
  std::vector<Throughput> throughput;
  std::optional<ProductReport> products;
  std::optional<ProductReport> device_products;
};

inline constexpr int kReportFormat = 1;  // version of the JSON; raised when readers of the previous one fail

std::string FormatReport(const Report& report);
nlohmann::ordered_json ToJson(const Report& report);

}  // namespace spexd::bench

#endif  // SPEXD_CLIENT_BENCH_REPORT_H_
