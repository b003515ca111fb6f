// A whole load test: first the decoding ceiling, then each frame file, way and number of clients, one after
// the other.
#ifndef SPEXD_CLIENT_LOAD_LOAD_H_
#define SPEXD_CLIENT_LOAD_LOAD_H_

#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "client/job.h"
#include "client/load/open_loop.h"
#include "client/load/report.h"
#include "client/load/row.h"

namespace spexd::load {

struct LoadOptions {
  std::string server;               // its address
  std::vector<std::string> images;  // each is measured by itself
  std::string psf;
  std::optional<WavelengthGrid> grid;  // nullopt: the PSF's range in steps of 0.8 Angstrom
  std::optional<int> fibres;           // number of fibres from the first one on; nullopt: all
  client::JobProducts products;        // of each job; with redshifts or velocities, all jobs have the same
                                       // grid
  std::string folder;                  // for PSF files; "": the system's folder for temporary files
  std::vector<Way> ways = {Way::kPath, Way::kUpload};
  std::vector<int> clients = {1, 4, 16};
  std::optional<OpenLoopOptions> open;  // jobs arrive at random; nullopt: rows for `clients`
  int open_clients = 64;                // with `open`: the most jobs at once
  std::optional<int> frames;            // frames per row; nullopt: 4 per client, at least 8
  bool ceiling = true;
  int threads = 1;             // threads of the ceiling
  double ceiling_seconds = 1;  // duration of each of the ceiling's three measurements
};

using ConnectionMaker = std::function<absl::StatusOr<std::unique_ptr<client::Connection>>()>;
using Announce = std::function<void(const std::string& what)>;

// Runs one warm-up job for each frame file and way. Then it runs the rows or, for jobs that arrive at random,
// one row or the search for the highest rate. InvalidArgument, before anything runs: the options cannot be
// met. Otherwise returns the first error.
absl::StatusOr<Report> RunLoad(const LoadOptions& options, const ConnectionMaker& connect,
                               const Announce& announce, std::stop_token stop);

}  // namespace spexd::load

#endif  // SPEXD_CLIENT_LOAD_LOAD_H_
