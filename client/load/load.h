// A whole load test: what decoding takes here, then every frame file, way and number of clients, one after
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
#include "client/load/report.h"
#include "client/load/row.h"

namespace spexd::load {

struct LoadOptions {
  std::string server;               // its address
  std::vector<std::string> images;  // each one is measured by itself
  std::string psf;
  std::optional<WavelengthGrid> grid;  // none: the PSF's range by 0.8 Angstrom
  std::optional<int> fibres;           // the first so many; none: all
  std::string folder;                  // where PSF files are made; "": the system's for temporary files
  std::vector<Way> ways = {Way::kPath, Way::kUpload};
  std::vector<int> clients = {1, 4, 16};
  std::optional<int> frames;  // of each row; none: 4 for each client, at least 8
  bool ceiling = true;
  int threads = 1;             // of the ceiling
  double ceiling_seconds = 1;  // of each of its three figures
};

using ConnectionMaker = std::function<std::unique_ptr<client::Connection>()>;
using Announce = std::function<void(const std::string& what)>;

// A job each of warm-up for every frame file and way; then rows. InvalidArgument for options that cannot be
// met, before anything is run; else the first error that there is.
absl::StatusOr<Report> RunLoad(const LoadOptions& options, const ConnectionMaker& connect,
                               const Announce& announce, std::stop_token stop);

}  // namespace spexd::load

#endif  // SPEXD_CLIENT_LOAD_LOAD_H_
