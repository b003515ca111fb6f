// The report of a load test, as tables for people and as JSON for programs.
#ifndef SPEXD_CLIENT_LOAD_REPORT_H_
#define SPEXD_CLIENT_LOAD_REPORT_H_

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "client/load/ceiling.h"
#include "client/load/open_loop.h"
#include "client/load/row.h"
#include "core/model/wavelength_grid.h"

namespace spexd::load {

struct ServerInfo {
  std::string address, version, engine;
  int devices = 0;  // number of CUDA devices
  int max_running_jobs = 0;
};

struct Report {
  std::string command;
  std::string time;       // time of the measurement, UTC
  std::string processor;  // processor of this host
  int processors = 0;
  ServerInfo server;
  std::string psf;
  int fibres = 0;
  WavelengthGrid grid;
  bool own_grids = true;                // the grid of each job is shifted a little
  std::vector<DecodeCeiling> ceilings;  // one per frame file; empty: not measured
  std::vector<Row> rows;
  // The rest is set instead of `rows` if jobs arrive at random.
  std::optional<OpenLoopOptions> open;
  int clients = 0;  // the most jobs at once
  std::vector<OpenRow> open_rows;
  struct BestRate {
    std::string image;
    Way way = Way::kPath;
    double rate = 0;  // 0: no rate keeps the goal
  };
  std::vector<BestRate> best_rates;  // empty without a goal

  const DecodeCeiling* CeilingOf(const std::string& image) const;  // null if there is none
};

inline constexpr int kReportFormat = 1;  // version of the JSON; raised when readers of the previous one fail

std::string FormatReport(const Report& report);
nlohmann::ordered_json ToJson(const Report& report);

}  // namespace spexd::load

#endif  // SPEXD_CLIENT_LOAD_REPORT_H_
