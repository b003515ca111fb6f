// A whole load test: first the decoding ceiling, then every frame file, way and number of clients, one after
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
  std::vector<std::string> images;  // each one is measured by itself
  std::string psf;
  std::optional<WavelengthGrid> grid;  // none: the PSF's range by 0.8 Angstrom
  std::optional<int> fibres;           // number of fibres from the first on; none: all
  client::JobProducts products;        // that each job asks for; with redshifts or velocities all jobs have one grid
  std::string folder;                  // folder for PSF files; "": the system's folder for temporary files
  std::vector<Way> ways = {Way::kPath, Way::kUpload};
  std::vector<int> clients = {1, 4, 16};
  std::optional<OpenLoopOptions> open;  // jobs that arrive at random, instead of rows for `clients`
  int open_clients = 64;                // of these, jobs at once at most
  std::optional<int> frames;            // frames per row; none: 4 for each client, at least 8
  bool ceiling = true;
  int threads = 1;             // threads of the ceiling
  double ceiling_seconds = 1;  // duration of each of the ceiling's three measurements
};

using ConnectionMaker = std::function<absl::StatusOr<std::unique_ptr<client::Connection>>()>;
using Announce = std::function<void(const std::string& what)>;

// Runs one warm-up job for every frame file and way, then the rows, or, for jobs that arrive at random, a row
// or the search for the highest rate. InvalidArgument for options that cannot be met, before anything is run;
// otherwise the first error.
absl::StatusOr<Report> RunLoad(const LoadOptions& options, const ConnectionMaker& connect,
                               const Announce& announce, std::stop_token stop);

}  // namespace spexd::load

#endif  // SPEXD_CLIENT_LOAD_LOAD_H_
